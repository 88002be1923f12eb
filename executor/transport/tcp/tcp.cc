#include "executor/transport/tcp/tcp.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "executor/transport/matching/transfers.h"
#include "executor/transport/tcp/mesh.h"
#include "executor/transport/tcp/peer_connection.h"
#include "executor/transport/transport_kind.h"
#include "perfmodel/base/error.h"

COMMTUNE_DECLARE_TRANSPORT(tcp)

namespace commtune {
namespace {

constexpr std::uint64_t kWakeEvent = ~std::uint64_t{0};

// So much is read beyond the end of a message, as small ones travel together.
constexpr std::size_t kReadAhead = std::size_t{16} << 10;

class TcpTransport final : public Transport {
 public:
  TcpTransport(std::shared_ptr<Bootstrap> bootstrap, const TcpOptions& options)
      : epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        options_(options),
        bootstrap_(std::move(bootstrap)) {
    auto mesh = tcp::connect_mesh(*bootstrap_, options);
    connections_.reserve(mesh.size());
    watch(wake_.get(), EPOLLIN, kWakeEvent);
    for (std::size_t peer = 0; peer < mesh.size(); ++peer) {
      const auto& connection = connections_.emplace_back(std::move(mesh[peer]), transfers_, peers(), limits_,
                                                         static_cast<int>(peer));
      if (connection) watch(connection.socket(), EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, peer);
    }
    share_links(std::vector<double>(mesh.size(), 1.0));
  }

  std::string_view name() const override { return "tcp"; }
  const Peers& peers() const override { return bootstrap_->peers(); }

  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    // The transport never writes through a send's pointer; one type of transfer serves both directions.
    const TransferId id = open(to, tag, const_cast<std::byte*>(data.data()), data.size());
    if (connection_to(to).send(id)) held_.push_back(to);
    return id;
  }

  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    const TransferId id = open(from, tag, data.data(), data.size());
    connection_to(from).receive(id);
    return id;
  }

  std::span<const Completion> wait(Deadline until) override {
    transfers_.release_reported();
    try {
      if (!failure_) move_until(until);
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
    // What came before a peer left is still told: it may be the reason why it left.
    if (failure_ && !transfers_.any_completed()) std::rethrow_exception(failure_);
    return transfers_.report();
  }

  void wake() noexcept override {
    const std::uint64_t one = 1;
    // Fails only when 2^64 - 2 wakes are pending, and then the sleeper is awake anyway.
    [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof one);
  }

  bool came_early(TagSpace space, std::uint32_t message) const override {
    return std::ranges::any_of(connections_, [&](const tcp::PeerConnection& connection) {
      return connection && connection.came_early(space, message);
    });
  }

  void check_peers() override {
    for (const tcp::PeerConnection& connection : connections_) {
      if (connection) connection.check_open();
    }
  }

  void limit_messages(const MessageLimits& limits) override { limits_ = limits; }

  void set_pace(double bytes_per_second) override { options_.pace = bytes_per_second; }

  void share_links(std::span<const double> shares) override {
    const bool paced = options_.pace > 0;
    if (!std::exchange(was_paced_, paced) && !paced) return;
    const int own_node = peers().node[static_cast<std::size_t>(peers().rank)];
    for (std::size_t peer = 0; peer < connections_.size(); ++peer) {
      if (!connections_[peer] || peers().node[peer] == own_node) continue;
      connections_[peer].share_link(options_.pace, shares[peer], options_.unsent_limit);
    }
  }

  void abort(std::string_view why) noexcept override {
    for (tcp::PeerConnection& connection : connections_) connection.say_why(why);
    bootstrap_->abort(why);
  }

 private:
  /// Until something is complete or has come early, wake() was called, or the deadline.
  void move_until(Deadline until) {
    flush_held();
    bool woken = false;
    do {
      poll_once(transfers_.any_completed() ? Deadline{} : until, woken);
    } while (!transfers_.any_completed() && !woken && !transfers_.take_early() && Clock::now() < until);
  }

  void watch(int fd, std::uint32_t events, std::uint64_t key) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = key;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw Error(ErrorCode::kUnavailable, fmt::format("watching a socket: {}", std::strerror(errno)));
    }
  }

  tcp::PeerConnection& connection_to(int peer) { return connections_[static_cast<std::size_t>(peer)]; }

  TransferId open(int peer, Tag tag, std::byte* data, std::size_t size) {
    assert(peer >= 0 && peer < peers().size() && peer != peers().rank);
    connection_to(peer).check_open();
    return transfers_.open(data, size, tag);
  }

  /// Waits for events until the deadline (in the past: only looks) and moves what can move.
  void poll_once(Deadline until, bool& woken) {
    std::array<epoll_event, 64> events;
    const bool more = std::ranges::any_of(connections_, &tcp::PeerConnection::readable);
    for (const tcp::PeerConnection& connection : connections_) {
      if (const auto due = connection.due()) until = std::min(until, *due);
    }
    const auto left =
        more ? Clock::duration::zero() : std::max(until - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timespec timeout{seconds.count(), (left - seconds).count()};
    const int n =
        epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), &timeout, nullptr);
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == kWakeEvent) {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = read(wake_.get(), &count, sizeof count);
        woken = true;
        continue;
      }
      connections_[event.data.u64].on_events(event.events);
    }
    for (tcp::PeerConnection& connection : connections_) {
      if (connection.readable()) connection.drain(ahead_);
      connection.flush_if_due();
    }
  }

  void flush_held() {
    for (const int peer : held_) connection_to(peer).flush_held();
    held_.clear();
  }

  Descriptor epoll_;
  Descriptor wake_;
  TcpOptions options_;
  bool was_paced_ = false;  // after the last share_links()
  MessageLimits limits_;
  matching::Transfers transfers_;
  std::vector<tcp::PeerConnection> connections_;  // by rank
  std::vector<int> held_;                         // peers for whom small messages wait
  std::exception_ptr failure_;                    // what ended a wait() that had something to report first
  std::vector<std::byte> ahead_ = std::vector<std::byte>(kReadAhead);
  // Last, hence destroyed first: it leaves the job, together with the other ranks, before the sockets close.
  std::shared_ptr<Bootstrap> bootstrap_;
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(std::shared_ptr<Bootstrap> bootstrap,
                                              const TcpOptions& options) {
  options.check();
  return std::make_unique<TcpTransport>(std::move(bootstrap), options);
}

}  // namespace commtune

namespace commtune::tcp {

/// Where no two ranks share a network, connecting says so.
std::optional<std::string> unusable(const Bootstrap& /*bootstrap*/) { return std::nullopt; }

std::unique_ptr<Transport> make(std::shared_ptr<Bootstrap> bootstrap, const TransportOptions& options,
                                Deadline until) {
  TcpOptions own;
  own.connect_timeout = time_to_connect(until, own.connect_timeout);
  own.network = options.subnet;
  own.pace = options.pace;
  return make_tcp_transport(std::move(bootstrap), own);
}

}  // namespace commtune::tcp
