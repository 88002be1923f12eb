#include "executor/transport/mpi/job.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>

#include "executor/transport/mpi/call.h"
#include "executor/transport/mpi/sockets.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

using mpi::expect;

/// Open MPI's own parameters that this transport wants otherwise than they are, with why.
struct LibrarySetting {
  const char* name;
  const char* value;
};
constexpr std::array kLibrarySettings = {
    // Its event loop on an epoll descriptor, which wait() can sleep on (the default, poll, has none).
    LibrarySetting{"OMPI_MCA_opal_event_include", "epoll"},
};

/// What the kernel may hold unsent on a connection: enough to keep a fast link busy between two wake-ups.
constexpr std::size_t kUnsentBytes = std::size_t{128} * 1024;

using HostName = std::array<char, MPI_MAX_PROCESSOR_NAME + 1>;
/// Ports at which a rank's library listens: it has one a kind of address. 0: none.
using Ports = std::array<std::uint16_t, 8>;

Ports ports_of(const std::vector<std::uint16_t>& listening) {
  Ports ports{};
  std::copy_n(listening.begin(), std::min(listening.size(), ports.size()), ports.begin());
  return ports;
}

/// The library has no call that waits for an end of time: asks again and again, less and less often.
///
/// call  that began the request
void finish(MPI_Request request, const char* call, Deadline until) {
  constexpr std::chrono::microseconds kFirstPause{20}, kLongestPause{5000};
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    int ended = 0;
    expect(MPI_Test(&request, &ended, MPI_STATUS_IGNORE), call);
    if (ended != 0) return;
    if (Clock::now() >= until) throw Error(ErrorCode::kTimeout, "timed out");
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

MpiJob::MpiJob() {
  for (const LibrarySetting& setting : kLibrarySettings) setenv(setting.name, setting.value, 0);
  const LibrarySockets sockets;
  int provided = 0;
  expect(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread",
         ErrorCode::kUnavailable);
  const std::vector<std::uint16_t> own_ports = sockets.listening();
  if (provided < MPI_THREAD_SERIALIZED) {
    throw Error(ErrorCode::kUnavailable,
                "MPI_Init_thread: this MPI library lacks MPI_THREAD_SERIALIZED, which the executor needs");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  find_peers();
  connect_all();
  std::vector<std::uint16_t> all_ports;
  for (const Ports& ports : commtune::all_gather(*this, ports_of(own_ports), Deadline::max())) {
    std::ranges::copy_if(ports, std::back_inserter(all_ports), [](std::uint16_t port) { return port != 0; });
  }
  sockets.limit_unsent(kUnsentBytes, own_ports, all_ports);
}

MpiJob::~MpiJob() {
  if (given_up_) return;
  await_all();
  MPI_Finalize();
}

/// MPI_Finalize asks thousands of times a second whether all ranks have come, on the processor of those that
/// still work on this host.
void MpiJob::await_all() noexcept {
  try {
    MPI_Request request = MPI_REQUEST_NULL;
    expect(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
    finish(request, "MPI_Ibarrier", Deadline::max());
  } catch (const Error&) {  // who is gone does not come to MPI_Finalize either
  }
}

std::vector<std::byte> MpiJob::all_gather(std::span<const std::byte> own, Deadline until) {
  try {
    const std::uint64_t size = own.size();
    gather_equal(std::as_bytes(std::span(&size, 1)), until);
    std::vector<std::uint64_t> sizes(peers_.hosts.size());
    std::memcpy(sizes.data(), received_.data(), received_.size());
    check_record_sizes(peers_, sizes);
    gather_equal(own, until);
    return received_;
  } catch (const Error& error) {
    // A conflict is known to all ranks, and nothing is under way.
    if (error.code() != ErrorCode::kConflict) give_up();
    throw;
  }
}

void MpiJob::gather_equal(std::span<const std::byte> own, Deadline until) {
  sent_.assign(own.begin(), own.end());
  received_.resize(own.size() * peers_.hosts.size());
  MPI_Request request = MPI_REQUEST_NULL;
  const int bytes = static_cast<int>(own.size());
  expect(MPI_Iallgather(sent_.data(), bytes, MPI_BYTE, received_.data(), bytes, MPI_BYTE, MPI_COMM_WORLD,
                        &request),
         "MPI_Iallgather");
  finish(request, "MPI_Iallgather", until);
}

void MpiJob::abort(std::string_view why) noexcept {
  give_up();
  static_cast<void>(why);  // whoever calls has said it, or will not get to
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void MpiJob::find_peers() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &peers_.rank);
  peers_.hosts.resize(static_cast<std::size_t>(size));

  HostName own{};
  int length = 0;
  MPI_Get_processor_name(own.data(), &length);
  const std::vector<HostName> names = commtune::all_gather(*this, own, Deadline::max());
  std::ranges::transform(names, peers_.hosts.begin(), [](const HostName& name) { return name.data(); });

  // A host is what shares memory, named by its first rank.
  MPI_Comm node = MPI_COMM_NULL;
  expect(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
         "MPI_Comm_split_type");
  int first = peers_.rank;
  expect(MPI_Bcast(&first, 1, MPI_INT, 0, node), "MPI_Bcast");
  MPI_Comm_free(&node);
  peers_.node = commtune::all_gather(*this, first, Deadline::max());
}

void MpiJob::connect_all() {
  // The library connects when it first sends; here, rather than inside of what is timed.
  for (int step = 1; step < peers_.size(); ++step) {
    const int to = (peers_.rank + step) % peers_.size();
    const int from = (peers_.rank + peers_.size() - step) % peers_.size();
    expect(MPI_Sendrecv(nullptr, 0, MPI_BYTE, to, 0, nullptr, 0, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE),
           "MPI_Sendrecv");
  }
}

std::shared_ptr<MpiJob> join_mpi_job() { return std::make_shared<MpiJob>(); }

}  // namespace commtune
