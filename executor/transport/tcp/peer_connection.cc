#include "executor/transport/tcp/peer_connection.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "executor/base/value_bytes.h"

namespace commtune::tcp {
namespace {

constexpr std::size_t kSentAtOnce = std::size_t{8} << 10;  // a smaller message waits for others to go with it
constexpr std::size_t kReadBudget = std::size_t{1} << 20;  // bytes read before other peers have a turn
constexpr std::size_t kMostParts = 64;                     // of what one system call sends: two a message

/// The unsent parts of the transfers from `id` on, as far as they fit, and no more than `most` bytes of them.
///
/// returns  how many parts there are
std::size_t gather(Transfers& transfers, TransferId id, std::array<iovec, kMostParts>& parts,
                   std::size_t most) {
  std::size_t count = 0;
  for (; id != kNoTransfer && most > 0 && count + 2 <= parts.size(); id = transfers[id].next) {
    Transfer& transfer = transfers[id];
    if (transfer.done < sizeof(Header)) {
      parts[count++] = {reinterpret_cast<std::byte*>(&transfer.envelope) + transfer.done,
                        sizeof(Header) - transfer.done};
    }
    const std::size_t payload = transfer.done < sizeof(Header) ? 0 : transfer.done - sizeof(Header);
    const std::size_t length = std::min(transfer.envelope.size - payload, most);
    if (length > 0) parts[count++] = {transfer.data + payload, length};
    most -= length;
  }
  return count;
}

}  // namespace

PeerConnection::PeerConnection(Descriptor socket, Transfers& transfers, const Peers& peers,
                               const MessageLimits& limits, int peer)
    : socket_(std::move(socket)),
      transfers_(&transfers),
      peers_(&peers),
      peer_(peer),
      matches_(transfers, peers, limits, peer) {}

void PeerConnection::share_link(double pace, double share, Bytes unsent_limit) {
  pace_ = {};
  limit_unsent(socket(), unsent_limit);
  if (pace == 0) {
    limit_rate(socket(), kUnlimitedRate);
  } else if (share < 1) {
    pace_.set(socket(), pace, share, unsent_limit);
  } else {
    limit_rate(socket(), pace);
  }
}

void PeerConnection::check_open() const {
  if (closed_) throw lost("it has closed its connection");
}

bool PeerConnection::send(TransferId id) {
  const bool idle = sends_.empty();
  transfers_->append(sends_, id);
  if (!writable_ || !(idle || held_)) return false;
  if ((*transfers_)[id].envelope.size >= kSentAtOnce) {
    flush();
    return false;
  }
  return !std::exchange(held_, true);
}

void PeerConnection::receive(TransferId id) {
  std::optional<matching::EarlyMessage> early = matches_.post(id);
  if (!early) return;
  std::byte* const data = (*transfers_)[id].data;
  if (early->complete) {
    std::copy_n(early->data.data(), early->data.size(), data);
    transfers_->complete(id, early->envelope);
  } else {  // it is coming in right now: what has come is copied, the rest goes straight to its place
    std::copy_n(early->data.data(), payload_bytes_, data);
    target_ = id;
    early_target_ = nullptr;
  }
  matches_.recycle(std::move(*early));
}

void PeerConnection::on_events(std::uint32_t events) {
  constexpr std::uint32_t kEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & (EPOLLIN | kEnd)) != 0) readable_ = true;
  if ((events & kEnd) != 0) ending_ = true;
  if ((events & EPOLLOUT) != 0) writable_ = true;
}

void PeerConnection::flush_held() {
  if (held_) flush();
}

void PeerConnection::flush_if_due() {
  if (writable_ && !sends_.empty() && pace_.is_due()) flush();
}

void PeerConnection::flush() {
  held_ = false;
  while (!sends_.empty()) {
    const std::size_t room = pace_.room(socket());
    if (room == 0) return;
    std::array<iovec, kMostParts> parts;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = gather(*transfers_, sends_.first, parts, room);
    const ssize_t sent = sendmsg(socket(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) fail_to_send(errno);
      writable_ = false;
      return;
    }
    account_sent(static_cast<std::size_t>(sent));
  }
}

void PeerConnection::fail_to_send(int error) {
  std::array<std::byte, kLongestReason> ahead;
  drain(ahead);
  throw lost(std::strerror(error));
}

void PeerConnection::say_why(std::string_view why) noexcept {
  if (!socket_ || closed_) return;
  if (!sends_.empty() && (*transfers_)[sends_.first].done > 0) return;
  why = why.substr(0, kLongestReason);
  Header header{why.size(), kReasonTag, 0};
  std::array<iovec, 2> parts{{{&header, sizeof header}, {const_cast<char*>(why.data()), why.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  [[maybe_unused]] const auto sent = sendmsg(socket(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(socket(), SHUT_WR);
}

void PeerConnection::account_sent(std::size_t sent) {
  while (!sends_.empty()) {
    Transfer& transfer = (*transfers_)[sends_.first];
    const std::size_t left = sizeof(Header) + transfer.envelope.size - transfer.done;
    if (sent < left) {
      transfer.done += sent;
      return;
    }
    sent -= left;
    transfers_->complete(sends_.first, transfer.envelope);
    transfers_->pop_front(sends_);
  }
}

void PeerConnection::drain(std::span<std::byte> ahead) {
  for (std::size_t total = 0; total < kReadBudget;) {
    const std::span<std::byte> rest = rest_of_payload();
    const std::array<iovec, 2> parts{{{rest.data(), rest.size()}, {ahead.data(), ahead.size()}}};
    const ssize_t got = readv(socket(), parts.data(), static_cast<int>(parts.size()));
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) throw lost(std::strerror(errno));
      readable_ = false;
      return;
    }
    if (got == 0) {
      close();
      return;
    }
    const auto read = static_cast<std::size_t>(got);
    total += read;
    const std::size_t direct = std::min(read, rest.size());
    if (direct > 0) account_received(direct);
    unpack(ahead.first(read - direct));
    if (read < rest.size() + ahead.size()) {  // the socket was empty: an event will tell of more
      readable_ = ending_;
      return;
    }
  }
}

/// Headers and payloads that follow each other, from any point of a message to any other.
void PeerConnection::unpack(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const bool in_payload = header_bytes_ == sizeof(Header);
    const std::span<std::byte> place = in_payload ? rest_of_payload() : rest_of_header();
    const std::size_t length = std::min(bytes.size(), place.size());
    std::copy_n(bytes.begin(), length, place.begin());
    bytes = bytes.subspan(length);
    if (in_payload) {
      account_received(length);
    } else {
      header_bytes_ += length;
      if (header_bytes_ == sizeof(Header)) begin_incoming();
    }
  }
}

std::span<std::byte> PeerConnection::rest_of_header() {
  return value_bytes(incoming_).subspan(header_bytes_);
}

std::span<std::byte> PeerConnection::rest_of_payload() {
  if (header_bytes_ < sizeof(Header)) return {};
  if (says_why()) return std::as_writable_bytes(std::span(reason_)).subspan(payload_bytes_);
  std::byte* const data = early_target_ != nullptr ? early_target_->data.data() : (*transfers_)[target_].data;
  return std::span(data, incoming_.size).subspan(payload_bytes_);
}

void PeerConnection::account_received(std::size_t payload) {
  payload_bytes_ += payload;
  if (payload_bytes_ == incoming_.size) finish_incoming();
}

void PeerConnection::begin_incoming() {
  check_header();
  if (says_why()) {
    reason_.resize(incoming_.size);
    if (reason_.empty()) throw left();
    return;
  }
  target_ = matches_.take_receive(incoming_);
  if (target_ == kNoTransfer) early_target_ = &matches_.keep(incoming_);
  if (incoming_.size == 0) finish_incoming();
}

void PeerConnection::finish_incoming() {
  if (says_why()) throw left();
  if (early_target_ != nullptr) {
    early_target_->complete = true;
  } else {
    transfers_->complete(target_, incoming_);
  }
  target_ = kNoTransfer;
  early_target_ = nullptr;
  header_bytes_ = 0;
  payload_bytes_ = 0;
}

void PeerConnection::check_header() const {
  const bool known = static_cast<int>(tag_space_of(incoming_.tag)) < kTagSpaces &&
                     number_of(incoming_.tag) != kAnyNumber && incoming_.reserved == 0;
  if (known || (says_why() && incoming_.size <= kLongestReason && incoming_.reserved == 0)) return;
  throw Error(ErrorCode::kConflict, fmt::format("{} sent a message with tag {:#x}: no such tag is sent",
                                                describe(*peers_, peer_), incoming_.tag));
}

void PeerConnection::close() {
  closed_ = true;
  readable_ = false;
  writable_ = false;
  const bool owed = matches_.any_posted() || !sends_.empty() || target_ != kNoTransfer || header_bytes_ != 0;
  if (owed) throw lost("closed its connection in the middle of a transfer");
}

bool PeerConnection::says_why() const {
  return header_bytes_ == sizeof(Header) && incoming_.tag == kReasonTag;
}

Error PeerConnection::left() const { return run_ended(*peers_, peer_, reason_); }

Error PeerConnection::lost(std::string_view why) const {
  return Error(ErrorCode::kPeerLost, fmt::format("lost {}: {}", describe(*peers_, peer_), why));
}

}  // namespace commtune::tcp
