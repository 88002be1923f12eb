#include "executor/transport/local/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

#include "executor/transport/local/local_bootstrap.h"
#include "executor/transport/matching/match_queues.h"
#include "executor/transport/transport_kind.h"
#include "perfmodel/base/error.h"

COMMTUNE_DECLARE_TRANSPORT(local)

namespace commtune {
namespace {

using matching::EarlyMessage;
using matching::Envelope;
using matching::kNoTransfer;
using matching::Transfers;

/// Memory is the only limit: the sender's bytes lie in the same process.
constexpr MessageLimits kUnlimited{.longest = {std::numeric_limits<std::uint64_t>::max()},
                                   .early = {std::numeric_limits<std::uint64_t>::max()}};

/// A message at its receiver.
struct Arrival {
  int from = 0;
  EarlyMessage message;
};

/// What a rank has of the fabric.
struct Port {
  Port(const Peers& peers, int ranks) : unmet(static_cast<std::size_t>(ranks)) {
    for (int peer = 0; peer < ranks; ++peer) matches.emplace_back(transfers, peers, kUnlimited, peer);
  }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  Transfers transfers;
  std::vector<matching::MatchQueues> matches;  // by peer
  std::vector<Arrival> arrived;                // not looked at yet, in the order of sending
  std::vector<std::size_t> unmet;              // by peer: sends to it that end when a receive meets them
  bool left = false;                           // this rank has gone
  std::condition_variable changed;
  bool woken = false;
  std::optional<std::pair<ErrorCode, std::string>> failure;
};

/// All ranks' state under one lock: simple, and nothing here is timed.
struct Fabric {
  Fabric(Peers all, LocalOptions::SendEnds ends) : peers(std::move(all)), send_ends(ends) {
    for (int rank = 0; rank < peers.size(); ++rank) ports.emplace_back(peers, peers.size());
  }
  const Peers peers;
  const LocalOptions::SendEnds send_ends;
  std::mutex mutex;  // guards everything below
  std::deque<Port> ports;

  Port& port(int rank) { return ports[static_cast<std::size_t>(rank)]; }

  void end(int rank, TransferId transfer, const Envelope& message) {
    port(rank).transfers.complete(transfer, message);
    port(rank).changed.notify_all();
  }

  /// Writes a message where its receive wants it. Only the receiver's own thread may call this: nobody else
  /// knows whether that memory still exists.
  void deliver(int receiver, int from, const EarlyMessage& message, TransferId receive) {
    std::copy_n(message.data.data(), message.data.size(), port(receiver).transfers[receive].data);
    end(receiver, receive, message.envelope);
    if (message.send == kNoTransfer) return;
    --port(from).unmet[static_cast<std::size_t>(receiver)];
    end(from, message.send, message.envelope);
  }

  /// Gives what has arrived at `receiver` to the receives that it meets.
  void take_arrivals(int receiver) {
    Port& at = port(receiver);
    for (Arrival& arrival : at.arrived) {
      auto& matches = at.matches[static_cast<std::size_t>(arrival.from)];
      const TransferId receive = matches.take_receive(arrival.message.envelope);
      if (receive == kNoTransfer) {
        matches.keep(std::move(arrival.message));
      } else {
        deliver(receiver, arrival.from, arrival.message, receive);
      }
    }
    at.arrived.clear();
  }

  /// Fails a rank that waits for one that has gone.
  void find_lost_peer(int rank) {
    Port& at = port(rank);
    for (int peer = 0; peer < peers.size(); ++peer) {
      const auto index = static_cast<std::size_t>(peer);
      if (!port(peer).left || (!at.matches[index].any_posted() && at.unmet[index] == 0)) continue;
      return fail(rank, ErrorCode::kPeerLost, lost(peer));
    }
  }

  std::string lost(int peer) const {
    return fmt::format("lost {}: it has left in the middle of a transfer", describe(peers, peer));
  }

  void fail(int rank, ErrorCode code, const std::string& why) {
    if (!port(rank).failure) port(rank).failure.emplace(code, why);
    port(rank).changed.notify_all();
  }
};

class LocalTransport final : public Transport {
 public:
  /// bootstrap  what they met by, none where they need not
  LocalTransport(std::shared_ptr<Fabric> fabric, Peers peers, std::shared_ptr<Bootstrap> bootstrap = nullptr)
      : fabric_(std::move(fabric)), peers_(std::move(peers)), bootstrap_(std::move(bootstrap)) {}
  ~LocalTransport() override;

  std::string_view name() const override { return "local"; }
  const Peers& peers() const override { return peers_; }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override;
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override;
  std::span<const Completion> wait(Deadline until) override;
  bool came_early(TagSpace space, std::uint32_t message) const override;
  void wake() noexcept override;
  void abort(std::string_view why) noexcept override;

 private:
  const std::shared_ptr<Fabric> fabric_;  // shared by the ends: the last one to go frees it
  const Peers peers_;
  const std::shared_ptr<Bootstrap> bootstrap_;
};

LocalTransport::~LocalTransport() {
  const std::lock_guard lock(fabric_->mutex);
  fabric_->port(peers_.rank).left = true;
  for (Port& port : fabric_->ports) port.changed.notify_all();
}

TransferId LocalTransport::send(int to, Tag tag, std::span<const std::byte> data) {
  const std::lock_guard lock(fabric_->mutex);
  Port& receiver = fabric_->port(to);
  if (receiver.left) throw Error(ErrorCode::kPeerLost, fabric_->lost(to));
  const TransferId id = fabric_->port(peers_.rank).transfers.open(nullptr, 0, tag);
  EarlyMessage message{{data.size(), tag}, {data.begin(), data.end()}, true};
  if (fabric_->send_ends == LocalOptions::SendEnds::kWhenReceived) {
    message.send = id;
    ++fabric_->port(peers_.rank).unmet[static_cast<std::size_t>(to)];
  } else {
    fabric_->end(peers_.rank, id, message.envelope);
  }
  receiver.arrived.push_back({peers_.rank, std::move(message)});
  receiver.changed.notify_all();
  return id;
}

TransferId LocalTransport::receive(int from, Tag tag, std::span<std::byte> data) {
  const std::lock_guard lock(fabric_->mutex);
  Port& port = fabric_->port(peers_.rank);
  const TransferId id = port.transfers.open(data.data(), data.size(), tag);
  try {
    fabric_->take_arrivals(peers_.rank);
    const auto message = port.matches[static_cast<std::size_t>(from)].post(id);
    if (message) fabric_->deliver(peers_.rank, from, *message, id);
  } catch (const Error& error) {  // for wait() to throw
    fabric_->fail(peers_.rank, error.code(), error.what());
  }
  return id;
}

std::span<const Completion> LocalTransport::wait(Deadline until) {
  std::unique_lock lock(fabric_->mutex);
  Port& port = fabric_->port(peers_.rank);
  port.transfers.release_reported();
  const auto something = [&] {
    if (!port.failure) fabric_->take_arrivals(peers_.rank);
    if (!port.failure && !port.transfers.any_completed()) fabric_->find_lost_peer(peers_.rank);
    return port.transfers.any_completed() || port.transfers.take_early() || port.woken || port.failure;
  };
  if (until == Deadline::max()) {
    port.changed.wait(lock, something);
  } else {
    port.changed.wait_until(lock, until, something);
  }
  if (port.failure) {
    throw Error(port.failure->first, port.failure->second);
  }
  if (!port.transfers.any_completed()) port.woken = false;
  return port.transfers.report();
}

bool LocalTransport::came_early(TagSpace space, std::uint32_t message) const {
  const std::lock_guard lock(fabric_->mutex);
  return std::ranges::any_of(fabric_->port(peers_.rank).matches, [&](const matching::MatchQueues& matches) {
    return matches.came_early(space, message);
  });
}

void LocalTransport::wake() noexcept {
  const std::lock_guard lock(fabric_->mutex);
  fabric_->port(peers_.rank).woken = true;
  fabric_->port(peers_.rank).changed.notify_all();
}

void LocalTransport::abort(std::string_view why) noexcept {
  const std::lock_guard lock(fabric_->mutex);
  for (int rank = 0; rank < peers_.size(); ++rank) {
    if (rank != peers_.rank) {
      fabric_->fail(rank, ErrorCode::kPeerLost,
                    fmt::format("{} ended the run: {}", describe(peers_, peers_.rank), why));
    }
  }
  if (bootstrap_) bootstrap_->abort(why);
}

}  // namespace

Peers local_peers(int n, int ranks_per_host) {
  Peers peers;
  for (int rank = 0; rank < n; ++rank) {
    const int node = rank / ranks_per_host;
    peers.hosts.push_back(fmt::format("local{}", node));
    peers.node.push_back(node);
  }
  return peers;
}

std::vector<std::unique_ptr<Transport>> make_local_transports(int n, LocalOptions options) {
  Peers peers = local_peers(n, options.ranks_per_host);
  const auto fabric = std::make_shared<Fabric>(peers, options.send_ends);
  std::vector<std::unique_ptr<Transport>> transports;
  for (peers.rank = 0; peers.rank < n; ++peers.rank) {
    transports.push_back(std::make_unique<LocalTransport>(fabric, peers));
  }
  return transports;
}

}  // namespace commtune

namespace commtune::local {

std::optional<std::string> unusable(const Bootstrap& bootstrap) {
  if (dynamic_cast<const LocalBootstrap*>(&bootstrap) != nullptr) return std::nullopt;
  return "its ranks are threads of one process that have met in its memory, and these have not: use tcp";
}

std::unique_ptr<Transport> make(std::shared_ptr<Bootstrap> bootstrap, const TransportOptions& /*options*/,
                                Deadline until) {
  const Peers peers = bootstrap->peers();
  std::shared_ptr<Fabric> own;
  if (peers.rank == 0) own = std::make_shared<Fabric>(peers, LocalOptions{}.send_ends);
  auto shared = dynamic_cast<LocalBootstrap&>(*bootstrap).share(own, until);
  return std::make_unique<LocalTransport>(std::static_pointer_cast<Fabric>(std::move(shared)), peers,
                                          std::move(bootstrap));
}

}  // namespace commtune::local
