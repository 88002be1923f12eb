#include "executor/transport/mpi/mpi.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <climits>
#include <functional>
#include <utility>

#include "executor/transport/mpi/call.h"
#include "executor/transport/mpi/idle.h"
#include "executor/transport/mpi/requests.h"
#include "executor/transport/transport_kind.h"
#include "perfmodel/base/error.h"

COMMTUNE_DECLARE_TRANSPORT(mpi)

namespace commtune {
namespace {

using mpi::expect;

class MpiTransport final : public Transport, public mpi::Requests {
 public:
  explicit MpiTransport(std::shared_ptr<MpiJob> job);
  ~MpiTransport() override;

  std::string_view name() const override { return "mpi"; }
  const Peers& peers() const override { return peers_; }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override;
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override;
  std::span<const Completion> wait(Deadline until) override;
  void wake() noexcept override { idle_.wake(); }
  void abort(std::string_view why) noexcept override;

  void watch(MPI_Request request, const void* owner, std::function<void()> ended) override;
  bool forget(const void* owner) noexcept override;
  const std::shared_ptr<MpiJob>& job() const override { return job_; }

 private:
  /// A transfer under way: its request is at the same index of requests_.
  struct Active {
    TransferId id = 0;
    int peer = -1;
    Tag tag = 0;
    std::size_t bytes = 0;
    bool receives = false;
    const void* owner = nullptr;    // of a collective
    std::function<void()> ended{};  // of one: nobody's when it was forgotten
  };

  TransferId add_active(MPI_Request request, Active active);
  void remove_active(std::size_t index);
  void test();
  void throw_for(const Active& active, int code);
  MPI_Comm communicator(Tag tag) const { return spaces_[static_cast<std::size_t>(tag_space_of(tag))]; }
  void hang_bells();
  void ring_later(int rank);
  void ring_now();
  bool is_in_host(int peer) const {
    return peers_.node[static_cast<std::size_t>(peer)] == peers_.node[static_cast<std::size_t>(peers_.rank)];
  }

  const std::shared_ptr<MpiJob> job_;
  const Peers& peers_ = job_->peers();
  std::array<MPI_Comm, kTagSpaces> spaces_{};
  std::vector<MPI_Request> requests_;
  std::vector<Active> active_;
  int in_host_ = 0;  // active transfers with ranks of this host, which no socket tells about
  std::vector<TransferId> free_ids_;
  TransferId next_id_ = 0;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::vector<Completion> completed_;
  bool collective_ended_ = false;  // whom it is for looks it up
  Doorbell bell_;
  std::vector<int> to_ring_;  // ranks of this host that have something to look at, each once
  Idle idle_{bell_};
};

MpiTransport::MpiTransport(std::shared_ptr<MpiJob> job) : job_(std::move(job)) {
  for (MPI_Comm& space : spaces_) {
    expect(MPI_Comm_dup(MPI_COMM_WORLD, &space), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(space, MPI_ERRORS_RETURN);
  }
  hang_bells();
}

MpiTransport::~MpiTransport() {
  // What is under way would have to end first, which takes peers that may be gone.
  if (!requests_.empty()) job_->give_up();
  if (job_->given_up()) return;
  for (MPI_Comm& space : spaces_) MPI_Comm_free(&space);
}

void MpiTransport::hang_bells() {
  std::array<char, Doorbell::kNameLength + 1> own{};
  bell_.name().copy(own.data(), Doorbell::kNameLength);
  const auto all = all_gather(*job_, own, Deadline::max());
  std::vector<std::string> names(all.size());
  for (int rank = 0; rank < peers_.size(); ++rank) {
    if (rank == peers_.rank || !is_in_host(rank)) continue;
    names[static_cast<std::size_t>(rank)] = all[static_cast<std::size_t>(rank)].data();
  }
  bell_.set_peers(names);
}

void MpiTransport::ring_later(int rank) {
  if (!is_in_host(rank) || std::find(to_ring_.begin(), to_ring_.end(), rank) != to_ring_.end()) return;
  to_ring_.push_back(rank);
}

void MpiTransport::ring_now() {
  for (const int rank : to_ring_) bell_.ring(rank);
  to_ring_.clear();
}

TransferId MpiTransport::add_active(MPI_Request request, Active active) {
  if (free_ids_.empty()) free_ids_.push_back(next_id_++);
  active.id = free_ids_.back();
  free_ids_.pop_back();
  if (active.peer < 0 || is_in_host(active.peer)) ++in_host_;
  const TransferId id = active.id;
  requests_.push_back(request);
  active_.push_back(std::move(active));
  return id;
}

void MpiTransport::remove_active(std::size_t index) {
  const int peer = active_[index].peer;
  if (peer < 0 || is_in_host(peer)) --in_host_;
  free_ids_.push_back(active_[index].id);
  if (index + 1 != active_.size()) {
    active_[index] = std::move(active_.back());
    requests_[index] = requests_.back();
  }
  active_.pop_back();
  requests_.pop_back();
}

TransferId MpiTransport::send(int to, Tag tag, std::span<const std::byte> data) {
  assert(data.size() <= INT_MAX);
  MPI_Request request = MPI_REQUEST_NULL;
  const Active active{.peer = to, .tag = tag, .bytes = data.size()};
  const int code = MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, to,
                             static_cast<int>(number_of(tag)), communicator(tag), &request);
  if (code != MPI_SUCCESS) throw_for(active, code);
  ring_later(to);
  return add_active(request, active);
}

TransferId MpiTransport::receive(int from, Tag tag, std::span<std::byte> data) {
  assert(data.size() <= INT_MAX);
  MPI_Request request = MPI_REQUEST_NULL;
  const Active active{.peer = from, .tag = tag, .bytes = data.size(), .receives = true};
  const int number = number_of(tag) == kAnyNumber ? MPI_ANY_TAG : static_cast<int>(number_of(tag));
  const int code = MPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_BYTE, from, number,
                             communicator(tag), &request);
  if (code != MPI_SUCCESS) throw_for(active, code);
  return add_active(request, active);
}

void MpiTransport::watch(MPI_Request request, const void* owner, std::function<void()> ended) {
  Active active;
  active.owner = owner;
  active.ended = std::move(ended);
  add_active(request, std::move(active));
}

bool MpiTransport::forget(const void* owner) noexcept {
  bool any = false;
  for (Active& active : active_) {
    if (active.owner != owner) continue;
    active.ended = nullptr;
    any = true;
  }
  return any;
}

void MpiTransport::throw_for(const Active& active, int code) {
  job_->give_up();
  int kind = MPI_ERR_OTHER;
  MPI_Error_class(code, &kind);
  const std::string what =
      active.peer < 0
          ? "a collective of the library"
          : fmt::format("{} {}", active.receives ? "receive from" : "send to", describe(peers_, active.peer));
  if (kind == MPI_ERR_TRUNCATE) {
    expect(code, fmt::format("{}: longer than the {} B expected", what, active.bytes).c_str(),
           ErrorCode::kConflict);
  }
  expect(code, what.c_str());
}

void MpiTransport::test() {
  completed_.clear();
  collective_ended_ = false;
  const int count = static_cast<int>(requests_.size());
  if (count == 0) {
    int flag = 0;  // nothing of ours under way, but the library may have to answer others
    MPI_Iprobe(MPI_ANY_SOURCE, 0, spaces_[0], &flag, MPI_STATUS_IGNORE);
    return;
  }
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int ended = 0;
  const int code = MPI_Testsome(count, requests_.data(), &ended, indices_.data(), statuses_.data());
  if (ended == MPI_UNDEFINED) return;
  for (int i = 0; i < ended; ++i) {
    const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
    Active& active = active_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])];
    if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS) throw_for(active, status.MPI_ERROR);
    if (active.owner != nullptr) {
      if (active.ended) active.ended();
      collective_ended_ = true;
      continue;
    }
    if (active.receives) {
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      active.bytes = static_cast<std::size_t>(bytes);
      ring_later(active.peer);  // a long message's sender waits to hear that it was taken
      active.tag = make_tag(tag_space_of(active.tag), static_cast<std::uint32_t>(status.MPI_TAG));
    }
    completed_.push_back({active.id, active.tag, active.bytes});
  }
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    job_->give_up();
    expect(code, "MPI_Testsome");
  }
  // From the back, so that what moves into a gap is never one that is still to be removed.
  std::sort(indices_.begin(), indices_.begin() + ended, std::greater<>());
  for (int i = 0; i < ended; ++i)
    remove_active(static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]));
}

std::span<const Completion> MpiTransport::wait(Deadline until) {
  for (idle_.begin();; idle_.pause(until, !requests_.empty(), in_host_ > 0)) {
    test();
    ring_now();
    if (!completed_.empty() || collective_ended_ || idle_.woken()) return completed_;
    if (Clock::now() >= until) return completed_;
  }
}

void MpiTransport::abort(std::string_view why) noexcept { job_->abort(why); }

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(const std::shared_ptr<MpiJob>& job) {
  try {
    return std::make_unique<MpiTransport>(job);
  } catch (...) {
    job->give_up();
    throw;
  }
}

}  // namespace commtune

namespace commtune::mpi {

std::optional<std::string> unusable(const Bootstrap& bootstrap) {
  if (dynamic_cast<const MpiJob*>(&bootstrap) != nullptr) return std::nullopt;
  return "these ranks were not started by mpirun";
}

std::unique_ptr<Transport> make(std::shared_ptr<Bootstrap> bootstrap, const TransportOptions& /*options*/,
                                Deadline /*until: mpirun has connected them*/) {
  return make_mpi_transport(std::dynamic_pointer_cast<MpiJob>(std::move(bootstrap)));
}

}  // namespace commtune::mpi
