#include "executor/transport/verbs/verbs.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "executor/base/descriptor.h"
#include "executor/transport/matching/transfers.h"
#include "executor/transport/transport_kind.h"
#include "executor/transport/verbs/connect.h"
#include "executor/transport/verbs/device.h"
#include "executor/transport/verbs/peer_connection.h"
#include "executor/transport/verbs/queue_pair.h"
#include "executor/transport/verbs/regions.h"
#include "perfmodel/base/error.h"

COMMTUNE_DECLARE_TRANSPORT(verbs)

namespace commtune {
namespace {

using std::chrono::milliseconds;

// An answer that is on its way takes about so long; sleeping and waking takes longer.
constexpr std::chrono::microseconds kSpin{20};
// What was sent last may need so long to arrive before its connection may be taken down.
constexpr milliseconds kFlushLimit{1000};
constexpr milliseconds kLeaveLimit{200};
// Between two looks at whether a peer's card has it: about what a message takes.
constexpr std::chrono::microseconds kTellInterval{100};

/// Which rank of its host this one is.
std::size_t index_on_host(const Peers& peers) {
  const auto own = peers.node.begin() + peers.rank;
  return static_cast<std::size_t>(std::count(peers.node.begin(), own, *own));
}

Clock::duration as_clock(Seconds time) { return std::chrono::duration_cast<Clock::duration>(time); }

/// A rank's card and what all of its connections share.
struct OpenCard {
  OpenCard(const Peers& peers, const VerbsOptions& options)
      : device(verbs::choose_gid(verbs::list_gids(), options.gid, index_on_host(peers))),
        regions(device, options.relaxed_ordering),
        channel(verbs::library().create_comp_channel(device.context())) {
    if (!channel) throw verbs::card_error("creating a completion channel", device.gid(), errno);
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    const int wanted =
        std::max(1, (peers.size() - 1) * options.connections * verbs::QueuePair::kMostCompletions);
    if (wanted > device.limits().max_cqe) {
      throw Error(
          ErrorCode::kUnavailable,
          fmt::format("{} ranks with {} connections a pair need a completion queue of {} entries: {} has "
                      "at most {}",
                      peers.size(), options.connections, wanted, describe(device.gid()),
                      device.limits().max_cqe));
    }
    queue.reset(verbs::library().create_cq(device.context(), wanted, nullptr, channel.get(), 0));
    if (!queue) throw verbs::card_error("creating a completion queue", device.gid(), errno);
  }

  verbs::Device device;
  verbs::Regions regions;
  verbs::Owned<ibv_comp_channel> channel;
  verbs::Owned<ibv_cq> queue;
};

class CardTransport final : public VerbsTransport {
 public:
  CardTransport(std::shared_ptr<Bootstrap> bootstrap, const VerbsOptions& options)
      : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        options_(options),
        peers_(bootstrap->peers()),
        bootstrap_(std::move(bootstrap)) {
    const Deadline until = Clock::now() + as_clock(options.connect_timeout);
    make_connections(until);
    look_interval_ = std::min<Clock::duration>(as_clock(options.silence_limit) / 4, std::chrono::seconds(1));
    next_look_ = Clock::now() + look_interval_;
    wait_for_proofs(until);
  }

  ~CardTransport() override { take_leave(); }

  std::string_view name() const override { return "verbs"; }
  const Peers& peers() const override { return peers_; }
  EndFacts facts() const override { return verbs::facts_of(card_->device); }

  TransferUsage usage() const override {
    TransferUsage usage;
    for (const auto& connection : connections_)
      if (connection) usage.copied_bytes += connection->copied_bytes();
    usage.kept_regions = card_->regions.kept_count();
    usage.passing_regions = card_->regions.passing_count();
    return usage;
  }

  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    return guarded([&] {
      verbs::PeerConnection& connection = connection_to(to);
      connection.check_open();
      // The transport never writes through a send's pointer; one type of transfer serves both directions.
      const TransferId id = transfers_.open(const_cast<std::byte*>(data.data()), data.size(), tag);
      connection.send(id);
      connection.pump();
      return id;
    });
  }

  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    return guarded([&] {
      verbs::PeerConnection& connection = connection_to(from);
      const TransferId id = transfers_.open(data.data(), data.size(), tag);
      connection.receive(id);
      connection.pump();
      return id;
    });
  }

  std::span<const Completion> wait(Deadline until) override {
    return guarded([&] {
      transfers_.release_reported();
      bool woken = false;
      do {
        progress(until, woken);
      } while (!transfers_.any_completed() && !woken && !transfers_.take_early() && Clock::now() < until);
      return transfers_.report();
    });
  }

  bool came_early(TagSpace space, std::uint32_t message) const override {
    return std::ranges::any_of(connections_, [&](const auto& connection) {
      return connection && connection->came_early(space, message);
    });
  }

  void wake() noexcept override {
    const std::uint64_t one = 1;
    // Fails only when 2^64 - 2 wakes are pending, and then the sleeper is awake anyway.
    [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof one);
  }

  void limit_messages(const MessageLimits& limits) override { limits_ = limits; }

  void register_memory(std::span<std::byte> memory) override { card_->regions.keep(memory); }
  void unregister_memory(std::span<std::byte> memory) noexcept override { card_->regions.release(memory); }

  void abort(std::string_view why) noexcept override {
    failed_ = true;
    tell_all(why);
    bootstrap_->abort(why);
  }

 private:
  /// After anything was thrown nothing is sent any more, not even a farewell.
  template <typename Body>
  std::invoke_result_t<const Body&> guarded(const Body& body) {
    try {
      return body();
    } catch (...) {
      failed_ = true;
      throw;
    }
  }

  verbs::PeerConnection& connection_to(int peer) {
    assert(peer >= 0 && peer < peers_.size() && peer != peers_.rank);
    return *connections_[static_cast<std::size_t>(peer)];
  }

  void make_pairs() {
    card_.emplace(peers_, options_);
    sizes_.eager = options_.eager.count;
    sizes_.chunk = std::min<std::uint64_t>(options_.chunk.count, card_->device.port().max_msg_sz);
    sizes_.connections = static_cast<std::size_t>(options_.connections);
    for (int peer = 0; peer < peers_.size(); ++peer) {
      if (peer == peers_.rank) continue;
      auto& pairs = pairs_[static_cast<std::size_t>(peer)];
      pairs.reserve(sizes_.connections);
      for (std::size_t lane = 0; lane < sizes_.connections; ++lane) {
        pairs.push_back(std::make_unique<verbs::QueuePair>(card_->device, card_->regions, card_->queue.get(),
                                                           sizes_, peer, lane));
      }
    }
  }

  void make_connections(Deadline until) {
    pairs_.resize(peers_.hosts.size());
    connections_.resize(peers_.hosts.size());
    std::string failure;
    try {
      make_pairs();
    } catch (const Error& error) {
      failure = error.what();
    }
    verbs::agree_on_success(*bootstrap_, failure, until);
    std::vector<verbs::PairsOfPeer> pairs(pairs_.size());
    for (std::size_t peer = 0; peer < pairs.size(); ++peer)
      for (const auto& pair : pairs_[peer]) pairs[peer].push_back(pair.get());
    const auto introductions = verbs::connect_pairs(*bootstrap_, card_->device, pairs,
                                                    verbs::retry_rule(options_.silence_limit), until);
    for (std::size_t peer = 0; peer < pairs.size(); ++peer) {
      if (pairs[peer].empty()) continue;
      connections_[peer] = std::make_unique<verbs::PeerConnection>(
          std::vector<verbs::Wire*>(pairs[peer].begin(), pairs[peer].end()), transfers_, peers_, limits_,
          sizes_, static_cast<int>(peer));
      connections_[peer]->introduce(introductions[peer].own, introductions[peer].expected);
    }
  }

  void wait_for_proofs(Deadline until) {
    bool woken = false;
    while (const auto* const unproven = find_unproven()) {
      if (Clock::now() >= until) {
        const auto peer = static_cast<int>(unproven - connections_.data());
        throw Error(
            ErrorCode::kTimeout,
            fmt::format("waiting for {} to prove itself over {}: timed out: do its card's and this one's "
                        "network carry RDMA?",
                        describe(peers_, peer), describe(card_->device.gid())));
      }
      progress(until, woken);
    }
  }

  const std::unique_ptr<verbs::PeerConnection>* find_unproven() const {
    const auto found = std::ranges::find_if(
        connections_, [](const auto& connection) { return connection && !connection->is_proven(); });
    return found == connections_.end() ? nullptr : &*found;
  }

  // ---- Waiting ----

  /// Takes what has happened, or waits until something does, wake() was called or the time has come.
  void progress(Deadline until, bool& woken) {
    if (Clock::now() >= next_look_) look_at_silent();
    if (take_completions() || transfers_.any_completed()) return;
    for (const auto end = std::min(until, Clock::now() + kSpin); Clock::now() < end;)
      if (take_completions()) return;
    // What has come before the card was asked to tell of the next completion, it does not tell of.
    if (ibv_req_notify_cq(card_->queue.get(), 0) != 0)
      throw verbs::card_error("asking for completions", card_->device.gid(), errno);
    if (take_completions()) return;
    sleep(std::min(until, next_look_), woken);
  }

  void sleep(Deadline until, bool& woken) {
    const auto left = std::max(until - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timespec timeout{seconds.count(), (left - seconds).count()};
    std::array<pollfd, 2> polled{{{card_->channel->fd, POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (ppoll(polled.data(), polled.size(), &timeout, nullptr) <= 0) return;
    if ((polled[0].revents & POLLIN) != 0) take_events();
    if ((polled[1].revents & POLLIN) != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = read(wake_.get(), &count, sizeof count);
      woken = true;
    }
  }

  void take_events() {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    while (verbs::library().get_cq_event(card_->channel.get(), &queue, &context) == 0)
      verbs::library().ack_cq_events(queue, 1);
  }

  /// A card tells of a peer that is gone only when it has something for it.
  void look_at_silent() {
    next_look_ = Clock::now() + look_interval_;
    for (const auto& connection : connections_)
      if (connection && !connection->was_heard() && connection->is_owed()) connection->look();
  }

  /// returns  false: nothing has happened
  bool take_completions() {
    std::array<ibv_wc, 32> taken;
    std::optional<int> aftermath;
    bool any = false;
    for (int count = static_cast<int>(taken.size()); count == static_cast<int>(taken.size());) {
      count = ibv_poll_cq(card_->queue.get(), static_cast<int>(taken.size()), taken.data());
      if (count < 0) throw verbs::card_error("taking completions", card_->device.gid(), -count);
      any = any || count > 0;
      for (int i = 0; i < count; ++i) {
        const ibv_wc& completion = taken[static_cast<std::size_t>(i)];
        const verbs::WorkId work = verbs::WorkId::unpack(completion.wr_id);
        if (completion.status != IBV_WC_SUCCESS) {
          if (verbs::is_aftermath(completion.status)) {
            if (connection_to(work.peer).is_owed()) aftermath = work.peer;
          } else {
            fail(completion, work);
          }
          continue;
        }
        take(completion, work);
      }
    }
    if (aftermath) {
      const auto message = connection_to(*aftermath).awaited();
      verbs::raise({ErrorCode::kPeerLost,
                    fmt::format("lost {}: its connection has failed{}", describe(peers_, *aftermath),
                                verbs::message_text(message, "while waiting for"))},
                   message);
    }
    if (any) {
      for (const auto& connection : connections_)
        if (connection) connection->pump();
    }
    return any;
  }

  void take(const ibv_wc& completion, const verbs::WorkId& work) {
    verbs::PeerConnection& connection = connection_to(work.peer);
    if (!work.receive) {
      connection.on_sent(work.lane, work.number);
    } else if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      connection.on_written(work.lane, work.number, ntohl(completion.imm_data));
    } else {
      connection.on_frame(work.number, completion.byte_len);
    }
  }

  void fail(const ibv_wc& completion, const verbs::WorkId& work) {
    const verbs::PeerConnection& connection = connection_to(work.peer);
    if (connection.has_left() && !connection.is_owed()) return;
    verbs::WorkFailure failure =
        work.receive ? connection.failed_receive() : connection.failure_of(work.lane, work.number);
    failure.status = completion.status;
    failure.status_text = verbs::library().wc_status_str(completion.status);
    failure.vendor = completion.vendor_err;
    if (!card_->device.is_port_active()) failure.own_port_down = describe(card_->device.gid());
    verbs::raise(error_of(failure, peers_, work.peer), failure.message);
  }

  // ---- The end ----

  template <typename Condition>
  void progress_until(Clock::duration limit, const Condition& condition) {
    bool woken = false;
    for (const Deadline until = Clock::now() + limit; !condition() && Clock::now() < until;)
      progress(until, woken);
  }

  bool all_flushed() const {
    return std::ranges::all_of(
        connections_, [](const auto& connection) { return !connection || connection->is_flushed(); });
  }

  /// Lets what was sent arrive, leaves the job with the other ranks, and tells those who still wait.
  void take_leave() noexcept {
    try {
      if (!failed_) {
        for (const auto& connection : connections_)
          if (connection && !connection->is_flushed()) connection->look();
        progress_until(kFlushLimit, [&] { return all_flushed(); });
      }
      bootstrap_.reset();
      if (!failed_) {
        for (const auto& connection : connections_)
          if (connection) connection->leave();
        progress_until(kLeaveLimit, [&] { return all_flushed(); });
      }
    } catch (const std::exception&) {  // a peer that is gone needs no farewell
    }
  }

  /// Why the run ends. What else the card has to tell, failures among it, is of no use any more.
  void tell_all(std::string_view why) noexcept {
    try {
      for (const auto& connection : connections_)
        if (connection) connection->leave(why);
      std::array<ibv_wc, 32> taken;
      for (const Deadline until = Clock::now() + kLeaveLimit; !all_told() && Clock::now() < until;) {
        const int count = ibv_poll_cq(card_->queue.get(), static_cast<int>(taken.size()), taken.data());
        for (int i = 0; i < count; ++i) {
          const ibv_wc& completion = taken[static_cast<std::size_t>(i)];
          const verbs::WorkId work = verbs::WorkId::unpack(completion.wr_id);
          if (!work.receive && completion.status == IBV_WC_SUCCESS)
            connection_to(work.peer).on_sent(work.lane, work.number);
        }
        if (count <= 0) std::this_thread::sleep_for(kTellInterval);
      }
    } catch (const std::exception&) {  // who cannot be told sees the connection fail
    }
  }

  bool all_told() const {
    return std::ranges::all_of(connections_,
                               [](const auto& connection) { return !connection || connection->is_told(); });
  }

  Descriptor wake_;
  VerbsOptions options_;
  Peers peers_;
  MessageLimits limits_;
  matching::Transfers transfers_;
  verbs::ConnectionSizes sizes_;
  bool failed_ = false;
  Clock::duration look_interval_{};
  Deadline next_look_{};
  std::optional<OpenCard> card_;
  std::vector<std::vector<std::unique_ptr<verbs::QueuePair>>> pairs_;  // by rank, then by connection
  std::vector<std::unique_ptr<verbs::PeerConnection>> connections_;    // by rank
  std::shared_ptr<Bootstrap> bootstrap_;
};

}  // namespace

std::unique_ptr<VerbsTransport> make_verbs_transport(std::shared_ptr<Bootstrap> bootstrap,
                                                     const VerbsOptions& options) {
  options.check();
  return std::make_unique<CardTransport>(std::move(bootstrap), options);
}

}  // namespace commtune

namespace commtune::verbs {

std::optional<std::string> unusable(const Bootstrap& /*bootstrap*/) {
  try {
    const std::vector<Gid> gids = list_gids();
    choose_gid(gids, {}, 0);
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

std::unique_ptr<Transport> make(std::shared_ptr<Bootstrap> bootstrap, const TransportOptions& options,
                                Deadline until) {
  VerbsOptions own;
  own.connect_timeout = time_to_connect(until, own.connect_timeout);
  own.gid.subnet = options.subnet;
  read_verbs_options(options.own, own);
  return make_verbs_transport(std::move(bootstrap), own);
}

}  // namespace commtune::verbs
