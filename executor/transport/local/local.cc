#include "executor/transport/local/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>

#include "perfmodel/error.h"

namespace commtune {
namespace {

/// A send that no receive has met yet, or a receive that no send has met yet; kept at the receiver. Such a
/// send has ended for its rank, as it does where a network takes it: a rank may hold back sends until others
/// have ended, and the receive may be behind one of those.
struct Half {
  int from = 0;
  Tag tag = 0;
  std::byte* memory = nullptr;  // read only for a send
  std::size_t bytes = 0;
  TransferId transfer = 0;      // of the rank that posted it
  std::vector<std::byte> kept;  // of a send: what it sends
};

bool meets(const Half& send, const Half& receive) {
  if (send.from != receive.from || channel_of(send.tag) != channel_of(receive.tag)) return false;
  return number_of(receive.tag) == kAnyNumber || receive.tag == send.tag;
}

/// What a rank has of the fabric.
struct Port {
  std::list<Half> sends, receives;  // waiting at this rank, in the order of posting
  std::vector<Completion> completed;
  std::vector<bool> open;  // by TransferId
  std::condition_variable changed;
  bool woken = false;
  std::optional<std::pair<ErrorCode, std::string>> failure;
};

/// All ranks' state under one lock: simple, and nothing here is timed.
struct Fabric {
  explicit Fabric(int n) : ports(static_cast<std::size_t>(n)) {}
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

  void match(int receiver, const Half& send, const Half& receive) {
    if (send.bytes > receive.bytes) {
      fail(receiver, ErrorCode::kConflict,
           fmt::format("rank {} sent {} B where rank {} expected at most {} B", send.from, send.bytes,
                       receiver, receive.bytes));
      return;
    }
    if (send.bytes != 0) std::memcpy(receive.memory, send.memory, send.bytes);
    end(receiver, receive.transfer, send.tag, send.bytes);
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
  ~LocalTransport() override;

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

LocalTransport::~LocalTransport() {
  // What this rank still waited for points to memory that is about to go.
  const std::lock_guard lock(fabric_->mutex);
  fabric_->port(peers_.rank).receives.clear();
}

TransferId LocalTransport::send(int to, Tag tag, std::span<const std::byte> data) {
  const std::lock_guard lock(fabric_->mutex);
  const TransferId id = Fabric::new_transfer(fabric_->port(peers_.rank));
  // The receiver only ever reads through this pointer.
  Half half{peers_.rank, tag, const_cast<std::byte*>(data.data()), data.size(), id, {}};
  auto& receives = fabric_->port(to).receives;
  const auto receive =
      std::find_if(receives.begin(), receives.end(), [&](const Half& r) { return meets(half, r); });
  if (receive == receives.end()) {
    half.kept.assign(data.begin(), data.end());
    half.memory = half.kept.data();
    fabric_->port(to).sends.push_back(std::move(half));
  } else {
    fabric_->match(to, half, *receive);
    receives.erase(receive);
  }
  fabric_->end(peers_.rank, id, tag, data.size());
  return id;
}

TransferId LocalTransport::receive(int from, Tag tag, std::span<std::byte> data) {
  const std::lock_guard lock(fabric_->mutex);
  Port& port = fabric_->port(peers_.rank);
  const TransferId id = Fabric::new_transfer(port);
  const Half half{from, tag, data.data(), data.size(), id, {}};
  const auto send =
      std::find_if(port.sends.begin(), port.sends.end(), [&](const Half& s) { return meets(s, half); });
  if (send == port.sends.end()) {
    port.receives.push_back(half);
  } else {
    fabric_->match(peers_.rank, *send, half);
    port.sends.erase(send);
  }
  return id;
}

std::span<const Completion> LocalTransport::wait(Deadline until) {
  std::unique_lock lock(fabric_->mutex);
  Port& port = fabric_->port(peers_.rank);
  const auto something = [&] { return !port.completed.empty() || port.woken || port.failure; };
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
  const auto fabric = std::make_shared<Fabric>(n);
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
