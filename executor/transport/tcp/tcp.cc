#include "executor/transport/tcp/tcp.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <list>
#include <utility>

#include "executor/transport/tcp/mesh.h"
#include "executor/transport/tcp/pace.h"
#include "perfmodel/error.h"

namespace commtune {
namespace {

constexpr TransferId kNone = ~TransferId{0};
constexpr std::uint64_t kWakeEvent = ~std::uint64_t{0};
constexpr std::size_t kReadBudget = std::size_t{1}
                                    << 20;  // bytes read from one peer before the others have a turn

// Small messages travel together, as a system call and a packet for each cost more than their bytes: a
// smaller one than this waits until all that its rank does next has been started, and so much is read beyond
// the end of a message, as others may have come with it.
constexpr std::size_t kSentAtOnce = std::size_t{8} << 10;
constexpr std::size_t kReadAhead = std::size_t{16} << 10;
constexpr std::size_t kMostParts = 64;  // of what one system call sends: two a message

/// What precedes each message on the wire. All ranks run the same program on the same kind of processor.
struct Header {
  std::uint64_t size = 0;
  Tag tag = 0;
  std::uint32_t reserved = 0;
};

/// A transfer; lists of them are linked through `next`.
struct Transfer {
  std::byte* data = nullptr;  // a send only reads it
  std::size_t done = 0;       // of a send: bytes of header and data that the kernel has taken
  Header header;              // of a receive: its tag, and its room as size
  TransferId next = kNone;
};

bool fits(Tag receive, Tag sent) {
  return receive == sent || (number_of(receive) == kAnyNumber && channel_of(receive) == channel_of(sent));
}

/// A message that came before its receive.
struct Early {
  Header header;
  std::vector<std::byte> data;
  bool complete = false;
};

struct List {
  TransferId first = kNone, last = kNone;
};

/// One connection, with what is queued on it and the message that is coming in.
struct Connection {
  tcp::Descriptor socket;
  List sends;     // in the order in which they were started
  List receives;  // posted, not yet matched
  std::list<Early> early;
  tcp::Pace pace;
  bool readable = false;
  bool writable = true;
  bool held = false;    // small messages wait for others to go with them
  bool ending = false;  // the peer has closed its side; what it sent before is still to be read
  bool closed = false;

  Header incoming;               // being read
  std::size_t header_bytes = 0;  // of `incoming` that have come
  std::size_t payload_bytes = 0;
  TransferId target = kNone;      // the receive it goes to, or
  Early* early_target = nullptr;  // the memory it is kept in
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(std::unique_ptr<Transport> bootstrap, const TcpOptions& options)
      : epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        options_(options),
        bootstrap_(std::move(bootstrap)) {
    auto mesh = tcp::connect_mesh(*bootstrap_, options);
    connections_.resize(mesh.size());
    watch(wake_.get(), EPOLLIN, kWakeEvent);
    for (std::size_t peer = 0; peer < mesh.size(); ++peer) {
      if (!mesh[peer]) continue;
      connections_[peer].socket = std::move(mesh[peer]);
      watch(connections_[peer].socket.get(), EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, peer);
    }
    share_links(std::vector<double>(mesh.size(), 1.0));
  }

  std::string_view name() const override { return "tcp"; }
  const Peers& peers() const override { return bootstrap_->peers(); }

  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    // The transport never writes through a send's pointer; one type of transfer serves both directions.
    const TransferId id = open(to, tag, const_cast<std::byte*>(data.data()), data.size());
    Connection& connection = connections_[static_cast<std::size_t>(to)];
    const bool idle = connection.sends.first == kNone;
    append(connection.sends, id);
    if (!connection.writable || !(idle || connection.held)) return id;
    if (data.size() >= kSentAtOnce) {
      flush(to);
    } else if (!std::exchange(connection.held, true)) {
      held_.push_back(to);
    }
    return id;
  }

  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    const TransferId id = open(from, tag, data.data(), data.size());
    Connection& connection = connections_[static_cast<std::size_t>(from)];
    const auto early = std::find_if(connection.early.begin(), connection.early.end(),
                                    [&](const Early& e) { return fits(tag, e.header.tag); });
    if (early == connection.early.end()) {
      append(connection.receives, id);
      return id;
    }
    check_room(from, early->header, id);
    if (early->complete) {
      std::copy(early->data.begin(), early->data.end(), data.begin());
      completed_.push_back({id, early->header.tag, early->header.size});
    } else {  // it is coming in right now: what has come is copied, the rest goes straight to its place
      std::copy_n(early->data.begin(), connection.payload_bytes, data.begin());
      connection.target = id;
      connection.early_target = nullptr;
    }
    connection.early.erase(early);
    return id;
  }

  std::span<const Completion> wait(Deadline until) override {
    release_reported();
    flush_held();
    bool woken = false;
    do {
      poll_once(completed_.empty() ? until : Deadline{}, woken);
    } while (completed_.empty() && !woken && Clock::now() < until);
    std::swap(completed_, reported_);
    return reported_;
  }

  void wake() noexcept override {
    const std::uint64_t one = 1;
    // Fails only when 2^64 - 2 wakes are pending, and then the sleeper is awake anyway.
    [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof one);
  }

  void set_pace(double bytes_per_second) override { options_.pace = bytes_per_second; }

  void share_links(std::span<const double> shares) override {
    const bool paced = options_.pace > 0;
    if (!std::exchange(was_paced_, paced) && !paced) return;
    const int own_node = peers().node[static_cast<std::size_t>(peers().rank)];
    for (std::size_t peer = 0; peer < connections_.size(); ++peer) {
      if (!connections_[peer].socket || peers().node[peer] == own_node) continue;
      const int socket = connections_[peer].socket.get();
      connections_[peer].pace = {};
      tcp::limit_unsent(socket, options_.unsent_limit);
      if (!paced) {
        tcp::limit_rate(socket, tcp::kUnlimitedRate);
      } else if (shares[peer] < 1) {
        connections_[peer].pace.set(socket, options_.pace, shares[peer], options_.unsent_limit);
      } else {
        tcp::limit_rate(socket, options_.pace);
      }
    }
  }

  std::optional<TransferId> library_all_reduce(int, DataType, std::span<std::byte>) override {
    return std::nullopt;
  }

  void abort(std::string_view why) noexcept override { bootstrap_->abort(why); }

 private:
  void watch(int fd, std::uint32_t events, std::uint64_t key) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = key;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw Error(ErrorCode::kUnavailable, fmt::format("watching a socket: {}", std::strerror(errno)));
    }
  }

  TransferId open(int peer, Tag tag, std::byte* data, std::size_t size) {
    assert(peer >= 0 && peer < peers().size() && peer != peers().rank);
    if (connections_[static_cast<std::size_t>(peer)].closed) throw lost(peer, "it has closed its connection");
    TransferId id = free_;
    if (id == kNone) {
      id = static_cast<TransferId>(transfers_.size());
      transfers_.emplace_back();
    } else {
      free_ = transfers_[id].next;
    }
    transfers_[id] = Transfer{data, 0, Header{size, tag, 0}, kNone};
    return id;
  }

  /// Transfers reported by the last wait() may be used again.
  void release_reported() {
    for (const Completion& completion : reported_) {
      transfers_[completion.transfer].next = free_;
      free_ = completion.transfer;
    }
    reported_.clear();
  }

  void append(List& list, TransferId id) {
    (list.last == kNone ? list.first : transfers_[list.last].next) = id;
    list.last = id;
  }

  TransferId pop_front(List& list) {
    const TransferId id = list.first;
    list.first = transfers_[id].next;
    if (list.first == kNone) list.last = kNone;
    transfers_[id].next = kNone;
    return id;
  }

  /// Takes the first receive that a message with this tag fits out of the list.
  TransferId take(List& list, Tag tag) {
    TransferId before = kNone;
    for (TransferId id = list.first; id != kNone; before = id, id = transfers_[id].next) {
      if (!fits(transfers_[id].header.tag, tag)) continue;
      if (before == kNone) return pop_front(list);
      transfers_[before].next = transfers_[id].next;
      if (list.last == id) list.last = before;
      transfers_[id].next = kNone;
      return id;
    }
    return kNone;
  }

  /// Waits for events until the deadline (in the past: only looks) and moves what can move.
  void poll_once(Deadline until, bool& woken) {
    std::array<epoll_event, 64> events;
    const bool more =
        std::any_of(connections_.begin(), connections_.end(), [](const Connection& c) { return c.readable; });
    for (const Connection& connection : connections_) {
      if (const auto due = connection.pace.due()) until = std::min(until, *due);
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
      Connection& connection = connections_[event.data.u64];
      if ((event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) connection.readable = true;
      if ((event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) connection.ending = true;
      if ((event.events & EPOLLOUT) != 0) connection.writable = true;
    }
    for (int peer = 0; peer < peers().size(); ++peer) {
      Connection& connection = connections_[static_cast<std::size_t>(peer)];
      if (connection.readable) drain(peer);
      if (connection.writable && connection.sends.first != kNone && connection.pace.is_due()) flush(peer);
    }
  }

  void flush_held() {
    for (const int peer : held_) {
      if (connections_[static_cast<std::size_t>(peer)].held) flush(peer);
    }
    held_.clear();
  }

  /// Writes queued messages until there are none or the kernel takes no more.
  void flush(int peer) {
    Connection& connection = connections_[static_cast<std::size_t>(peer)];
    connection.held = false;
    while (connection.sends.first != kNone) {
      const std::size_t room = connection.pace.room(connection.socket.get());
      if (room == 0) return;
      std::array<iovec, kMostParts> parts;
      const std::size_t count = gather(connection.sends.first, parts, room);
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = count;
      const ssize_t sent = sendmsg(connection.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) throw lost(peer, std::strerror(errno));
        connection.writable = false;
        return;
      }
      account_sent(connection, static_cast<std::size_t>(sent));
    }
  }

  /// The unsent parts of the transfers from `id` on, as far as they fit, and no more than `most` bytes of
  /// them.
  std::size_t gather(TransferId id, std::array<iovec, kMostParts>& parts, std::size_t most) {
    std::size_t count = 0;
    for (; id != kNone && most > 0 && count + 2 <= parts.size(); id = transfers_[id].next) {
      Transfer& transfer = transfers_[id];
      if (transfer.done < sizeof(Header)) {
        parts[count++] = {reinterpret_cast<std::byte*>(&transfer.header) + transfer.done,
                          sizeof(Header) - transfer.done};
      }
      const std::size_t payload = transfer.done < sizeof(Header) ? 0 : transfer.done - sizeof(Header);
      const std::size_t length = std::min(transfer.header.size - payload, most);
      if (length > 0) parts[count++] = {transfer.data + payload, length};
      most -= length;
    }
    return count;
  }

  void account_sent(Connection& connection, std::size_t sent) {
    while (connection.sends.first != kNone) {
      Transfer& transfer = transfers_[connection.sends.first];
      const std::size_t left = sizeof(Header) + transfer.header.size - transfer.done;
      if (sent < left) {
        transfer.done += sent;
        return;
      }
      sent -= left;
      completed_.push_back({connection.sends.first, transfer.header.tag, transfer.header.size});
      pop_front(connection.sends);
    }
  }

  /// Reads what has come, straight to where it belongs, and with it the beginning of what follows.
  void drain(int peer) {
    Connection& connection = connections_[static_cast<std::size_t>(peer)];
    for (std::size_t total = 0; total < kReadBudget;) {
      const std::span<std::byte> rest = rest_of_payload(connection);
      const std::array<iovec, 2> parts{{{rest.data(), rest.size()}, {ahead_.data(), ahead_.size()}}};
      const ssize_t got = readv(connection.socket.get(), parts.data(), static_cast<int>(parts.size()));
      if (got < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) throw lost(peer, std::strerror(errno));
        connection.readable = false;
        return;
      }
      if (got == 0) {
        close_connection(peer);
        return;
      }
      const auto read = static_cast<std::size_t>(got);
      total += read;
      const std::size_t direct = std::min(read, rest.size());
      if (direct > 0) account_received(connection, direct);
      unpack(peer, std::span(ahead_).first(read - direct));
      if (read < rest.size() + ahead_.size()) {  // the socket was empty: an event will tell of more
        connection.readable = connection.ending;
        return;
      }
    }
  }

  /// Headers and payloads that follow each other, from any point of a message to any other.
  void unpack(int peer, std::span<const std::byte> bytes) {
    Connection& connection = connections_[static_cast<std::size_t>(peer)];
    while (!bytes.empty()) {
      const bool in_payload = connection.header_bytes == sizeof(Header);
      const std::span<std::byte> place =
          in_payload ? rest_of_payload(connection) : rest_of_header(connection);
      const std::size_t length = std::min(bytes.size(), place.size());
      std::copy_n(bytes.begin(), length, place.begin());
      bytes = bytes.subspan(length);
      if (in_payload) {
        account_received(connection, length);
      } else {
        connection.header_bytes += length;
        if (connection.header_bytes == sizeof(Header)) begin_incoming(peer);
      }
    }
  }

  std::span<std::byte> rest_of_header(Connection& connection) {
    return std::as_writable_bytes(std::span(&connection.incoming, 1)).subspan(connection.header_bytes);
  }

  /// Empty outside of one.
  std::span<std::byte> rest_of_payload(Connection& connection) {
    if (connection.header_bytes < sizeof(Header)) return {};
    return std::span(target_of(connection), connection.incoming.size).subspan(connection.payload_bytes);
  }

  void account_received(Connection& connection, std::size_t payload) {
    connection.payload_bytes += payload;
    if (connection.payload_bytes == connection.incoming.size) finish_incoming(connection);
  }

  std::byte* target_of(const Connection& connection) {
    return connection.early_target != nullptr ? connection.early_target->data.data()
                                              : transfers_[connection.target].data;
  }

  /// A header is complete: finds the receive that it belongs to.
  void begin_incoming(int peer) {
    Connection& connection = connections_[static_cast<std::size_t>(peer)];
    connection.target = take(connection.receives, connection.incoming.tag);
    if (connection.target != kNone) {
      check_room(peer, connection.incoming, connection.target);
    } else {
      connection.early.push_back(
          {connection.incoming, std::vector<std::byte>(connection.incoming.size), false});
      connection.early_target = &connection.early.back();
    }
    if (connection.incoming.size == 0) finish_incoming(connection);
  }

  void finish_incoming(Connection& connection) {
    if (connection.early_target != nullptr) {
      connection.early_target->complete = true;
    } else {
      completed_.push_back({connection.target, connection.incoming.tag, connection.incoming.size});
    }
    connection.target = kNone;
    connection.early_target = nullptr;
    connection.header_bytes = 0;
    connection.payload_bytes = 0;
  }

  void check_room(int peer, const Header& message, TransferId receive) const {
    const std::size_t room = transfers_[receive].header.size;
    if (message.size <= room) return;
    throw Error(ErrorCode::kConflict,
                fmt::format("{} sent {} B where at most {} B were expected (channel {}, number {})",
                            describe(peers(), peer), message.size, room,
                            static_cast<std::uint32_t>(channel_of(message.tag)), number_of(message.tag)));
  }

  /// A peer that is done may go; one from which something is still due is lost.
  void close_connection(int peer) {
    Connection& connection = connections_[static_cast<std::size_t>(peer)];
    connection.closed = true;
    connection.readable = false;
    connection.writable = false;
    const bool owed = connection.receives.first != kNone || connection.sends.first != kNone ||
                      connection.target != kNone || connection.header_bytes != 0;
    if (owed) throw lost(peer, "closed its connection in the middle of a transfer");
  }

  Error lost(int peer, std::string_view why) const {
    return Error(ErrorCode::kPeerLost, fmt::format("lost {}: {}", describe(peers(), peer), why));
  }

  tcp::Descriptor epoll_;
  tcp::Descriptor wake_;
  TcpOptions options_;
  bool was_paced_ = false;               // after the last share_links()
  std::vector<Connection> connections_;  // by rank
  std::vector<Transfer> transfers_;      // by TransferId
  TransferId free_ = kNone;
  std::vector<int> held_;  // peers for whom small messages wait
  std::vector<std::byte> ahead_ = std::vector<std::byte>(kReadAhead);
  std::vector<Completion> completed_;  // since the last wait()
  std::vector<Completion> reported_;   // what the last wait() returned
  // Last, hence destroyed first: it leaves the job, together with the other ranks, before the sockets close.
  std::unique_ptr<Transport> bootstrap_;
};

}  // namespace

void TcpOptions::check() const {
  if (connect_timeout.count() <= 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("connect_timeout = {} s: must be positive", connect_timeout.count()));
  }
  if (!(pace >= 0) || pace > 1e15) {
    throw Error(ErrorCode::kBadInput, fmt::format("pace = {} B/s: must be 0 or positive", pace));
  }
  if (unsent_limit.count < 4096 || unsent_limit.count > (std::uint64_t{1} << 30)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("unsent_limit = {} B: must be between 4 KiB and 1 GiB", unsent_limit.count));
  }
}

std::unique_ptr<Transport> make_tcp_transport(std::unique_ptr<Transport> bootstrap,
                                              const TcpOptions& options) {
  options.check();
  return std::make_unique<TcpTransport>(std::move(bootstrap), options);
}

}  // namespace commtune
