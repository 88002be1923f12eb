#include "executor/transport/local/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>

#include "perfmodel/base/error.h"

namespace commtune {
namespace {

/// A message at its receiver.
struct Arrival {
  int from = 0;
  Tag tag = 0;
  std::vector<std::byte> data;
  // The send, which ends when a receive meets it. Empty if it has ended, because the network took it.
  std::optional<TransferId> sent_by;
};

struct Receive {
  int from = 0;
  Tag tag = 0;
  std::span<std::byte> memory;
  TransferId transfer = 0;
};

bool meets(const Arrival& message, const Receive& receive) {
  if (message.from != receive.from || tag_space_of(message.tag) != tag_space_of(receive.tag)) return false;
  return number_of(receive.tag) == kAnyNumber || receive.tag == message.tag;
}

/// What a rank has of the fabric.
struct Port {
  std::vector<Arrival> arrived;   // not looked at yet, in the order of sending
  std::list<Arrival> unexpected;  // no receive meets them yet
  std::list<Receive> receives;    // no message meets them yet, in the order of posting
  std::vector<Completion> completed;
  std::vector<bool> open;  // by TransferId
  std::condition_variable changed;
  bool woken = false;
  std::optional<std::pair<ErrorCode, std::string>> failure;
};

/// All ranks' state under one lock: simple, and nothing here is timed.
struct Fabric {
  Fabric(int n, LocalOptions::SendEnds ends) : send_ends(ends), ports(static_cast<std::size_t>(n)) {}
  const LocalOptions::SendEnds send_ends;
  std::mutex mutex;  // guards everything below
  std::vector<Port> ports;

  Port& port(int rank) { return ports[static_cast<std::size_t>(rank)]; }

  static TransferId new_transfer(Port& port) {
    const auto free = std::find(port.open.begin(), port.open.end(), false);
    const auto id = static_cast<TransferId>(free - port.open.begin());
    if (free == port.open.end()) {
      port.open.push_back(true);
    } else {
      *free = true;
    }
    return id;
  }

  void end(int rank, TransferId transfer, Tag tag, std::size_t bytes) {
    port(rank).completed.push_back({transfer, tag, bytes});
    port(rank).changed.notify_all();
  }

  /// Writes `message` where `receive` wants it. Only the receiver's own thread may call this: nobody else
  /// knows whether that memory still exists.
  void deliver(int receiver, const Arrival& message, const Receive& receive) {
    if (message.data.size() > receive.memory.size()) {
      fail(receiver, ErrorCode::kConflict,
           fmt::format("rank {} sent {} B where rank {} expected at most {} B", message.from,
                       message.data.size(), receiver, receive.memory.size()));
      return;
    }
    std::copy(message.data.begin(), message.data.end(), receive.memory.begin());
    end(receiver, receive.transfer, message.tag, message.data.size());
    if (message.sent_by) end(message.from, *message.sent_by, message.tag, message.data.size());
  }

  /// Gives what has arrived at `receiver` to the receives that it meets.
  void take_arrivals(int receiver) {
    Port& at = port(receiver);
    for (Arrival& message : at.arrived) {
      const auto receive = std::find_if(at.receives.begin(), at.receives.end(),
                                        [&](const Receive& r) { return meets(message, r); });
      if (receive == at.receives.end()) {
        at.unexpected.push_back(std::move(message));
      } else {
        deliver(receiver, message, *receive);
        at.receives.erase(receive);
      }
    }
    at.arrived.clear();
  }

  void fail(int rank, ErrorCode code, const std::string& why) {
    if (!port(rank).failure) port(rank).failure.emplace(code, why);
    port(rank).changed.notify_all();
  }
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<Fabric> fabric, Peers peers)
      : fabric_(std::move(fabric)), peers_(std::move(peers)) {}

  std::string_view name() const override { return "local"; }
  const Peers& peers() const override { return peers_; }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override;
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override;
  std::span<const Completion> wait(Deadline until) override;
  void wake() noexcept override;
  std::optional<TransferId> library_all_reduce(int /*ranks*/, DataType /*type*/,
                                               std::span<std::byte> /*data*/) override {
    return std::nullopt;
  }
  void abort(std::string_view why) noexcept override;

 private:
  const std::shared_ptr<Fabric> fabric_;  // shared by the ends: the last one to go frees it
  const Peers peers_;
  std::vector<Completion> completed_;
};

TransferId LocalTransport::send(int to, Tag tag, std::span<const std::byte> data) {
  const std::lock_guard lock(fabric_->mutex);
  const TransferId id = Fabric::new_transfer(fabric_->port(peers_.rank));
  Port& receiver = fabric_->port(to);
  Arrival message{peers_.rank, tag, {data.begin(), data.end()}, {}};
  if (fabric_->send_ends == LocalOptions::SendEnds::kWhenReceived) {
    message.sent_by = id;
  } else {
    fabric_->end(peers_.rank, id, tag, data.size());
  }
  receiver.arrived.push_back(std::move(message));
  receiver.changed.notify_all();
  return id;
}

TransferId LocalTransport::receive(int from, Tag tag, std::span<std::byte> data) {
  const std::lock_guard lock(fabric_->mutex);
  fabric_->take_arrivals(peers_.rank);
  Port& port = fabric_->port(peers_.rank);
  const Receive receive{from, tag, data, Fabric::new_transfer(port)};
  const auto message = std::find_if(port.unexpected.begin(), port.unexpected.end(),
                                    [&](const Arrival& m) { return meets(m, receive); });
  if (message == port.unexpected.end()) {
    port.receives.push_back(receive);
  } else {
    fabric_->deliver(peers_.rank, *message, receive);
    port.unexpected.erase(message);
  }
  return receive.transfer;
}

std::span<const Completion> LocalTransport::wait(Deadline until) {
  std::unique_lock lock(fabric_->mutex);
  Port& port = fabric_->port(peers_.rank);
  const auto something = [&] {
    fabric_->take_arrivals(peers_.rank);
    return !port.completed.empty() || port.woken || port.failure;
  };
  if (until == Deadline::max()) {
    port.changed.wait(lock, something);
  } else {
    port.changed.wait_until(lock, until, something);
  }
  if (port.failure) {
    throw Error(port.failure->first, port.failure->second);
  }
  completed_.clear();
  if (port.completed.empty()) {
    port.woken = false;
  } else {
    completed_.swap(port.completed);
    for (const Completion& completion : completed_) port.open[completion.transfer] = false;
  }
  return completed_;
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
}

}  // namespace

std::vector<std::unique_ptr<Transport>> make_local_transports(int n, LocalOptions options) {
  const auto fabric = std::make_shared<Fabric>(n, options.send_ends);
  Peers peers;
  for (int rank = 0; rank < n; ++rank) {
    const int node = rank / options.ranks_per_host;
    peers.hosts.push_back(fmt::format("local{}", node));
    peers.node.push_back(node);
  }
  std::vector<std::unique_ptr<Transport>> transports;
  for (peers.rank = 0; peers.rank < n; ++peers.rank) {
    transports.push_back(std::make_unique<LocalTransport>(fabric, peers));
  }
  return transports;
}

}  // namespace commtune
