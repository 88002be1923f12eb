#include "api/rest/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

namespace commtune::api::rest {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kReceive = 16U << 10U;
constexpr std::size_t kFlushAt = 256U << 10U;
constexpr milliseconds kLinger{1000};
constexpr std::size_t kLingerBytes = 1U << 20U;

std::pair<std::string, int> address_of(int socket, decltype(&::getpeername) ask) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (ask(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {"", 0};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&storage);
    ::inet_ntop(AF_INET, &in->sin_addr, text.data(), text.size());
    return {text.data(), ntohs(in->sin_port)};
  }
  if (storage.ss_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&storage);
    ::inet_ntop(AF_INET6, &in->sin6_addr, text.data(), text.size());
    return {text.data(), ntohs(in->sin6_port)};
  }
  return {"local", 0};
}

/// The value of a header in the text of a head; found whatever the case of its name.
std::string_view header_in(std::string_view head, std::string_view name) {
  for (std::size_t line = head.find("\r\n"); line != std::string_view::npos;
       line = head.find("\r\n", line + 2)) {
    const std::string_view rest = head.substr(line + 2);
    if (rest.size() <= name.size() || rest[name.size()] != ':') continue;
    const bool same = std::equal(name.begin(), name.end(), rest.begin(), [](char a, char b) {
      return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
    });
    if (!same) continue;
    std::string_view value = rest.substr(name.size() + 1, rest.find("\r\n") - name.size() - 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    return value;
  }
  return {};
}

}  // namespace

Connection::Connection(int socket, std::unique_ptr<SSL, FreeSsl> ssl, int stop,
                       const ConnectionLimits& limits)
    : socket_(socket), ssl_(std::move(ssl)), stop_(stop), limits_(limits) {
  const int flags = ::fcntl(socket_, F_GETFL);
  ::fcntl(socket_, F_SETFL, flags | O_NONBLOCK);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (ssl_) SSL_set_fd(ssl_.get(), socket_);
}

Connection::~Connection() {
  if (ssl_ && !broken_) SSL_shutdown(ssl_.get());
  ::close(socket_);
}

Connection::Wait Connection::wait(Wish wish, SteadyTime until) const {
  for (;;) {
    std::array<pollfd, 2> sets{pollfd{socket_, static_cast<short>(wish == Wish::kRead ? POLLIN : POLLOUT), 0},
                               pollfd{stop_, POLLIN, 0}};
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    if (left.count() <= 0) return Wait::kTimeout;
    const int ready =
        ::poll(sets.data(), sets.size(), static_cast<int>(std::min<long long>(left.count(), 1 << 30)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Wait::kTimeout;
    if (sets[0].revents != 0) return Wait::kReady;
    if (sets[1].revents != 0) return Wait::kStopped;
  }
}

bool Connection::handshake() {
  if (!ssl_) return true;
  const SteadyTime until = Clock::now() + limits_.head_time;
  for (;;) {
    ERR_clear_error();
    const int result = SSL_accept(ssl_.get());
    if (result == 1) return true;
    const int why = SSL_get_error(ssl_.get(), result);
    const bool reads = why == SSL_ERROR_WANT_READ;
    if ((!reads && why != SSL_ERROR_WANT_WRITE) ||
        wait(reads ? Wish::kRead : Wish::kWrite, until) != Wait::kReady) {
      broken_ = true;
      return false;
    }
  }
}

ssize_t Connection::receive(char* out, std::size_t size, SteadyTime until) {
  for (;;) {
    ssize_t got = 0;
    Wish wish = Wish::kRead;
    bool again = false;
    if (ssl_) {
      ERR_clear_error();
      got = SSL_read(ssl_.get(), out, static_cast<int>(size));
      const int why = got > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), static_cast<int>(got));
      if (why == SSL_ERROR_ZERO_RETURN) return 0;
      again = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
      if (why == SSL_ERROR_WANT_WRITE) wish = Wish::kWrite;
    } else {
      got = ::recv(socket_, out, size, 0);
      again = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
      if (got == 0) return 0;
    }
    if (got > 0) return got;
    if (!again) {
      broken_ = true;
      return -1;
    }
    const Wait waited = wait(wish, until);
    timed_out_ = waited == Wait::kTimeout;
    if (waited != Wait::kReady) return -1;
  }
}

bool Connection::send_all(const char* data, std::size_t size, SteadyTime until) {
  while (size > 0 && !broken_) {
    ssize_t sent = 0;
    Wish wish = Wish::kWrite;
    bool again = false;
    if (ssl_) {
      ERR_clear_error();
      sent = SSL_write(ssl_.get(), data, static_cast<int>(std::min<std::size_t>(size, 1U << 20U)));
      const int why = sent > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), static_cast<int>(sent));
      again = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
      if (why == SSL_ERROR_WANT_READ) wish = Wish::kRead;
    } else {
      sent = ::send(socket_, data, size, MSG_NOSIGNAL);
      again = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    }
    if (sent > 0) {
      data += sent;
      size -= static_cast<std::size_t>(sent);
    } else if (!again || wait(wish, until) != Wait::kReady) {
      broken_ = true;
    }
  }
  return !broken_;
}

Connection::Head Connection::read_head(milliseconds idle) {
  in_.erase(0, in_at_);
  in_at_ = 0;
  body_length_ = body_read_ = 0;
  chunked_ = head_written_ = streaming_ = false;
  SteadyTime until = Clock::now() + (in_.empty() ? idle : limits_.head_time);
  bool begun = !in_.empty();
  if (begun) body_deadline_ = Clock::now() + limits_.body_time;
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = in_.find("\r\n\r\n", searched);
    if (end != std::string::npos && end + 4 <= limits_.head_bytes) {
      note_head(end + 4);
      return Head::kComplete;
    }
    if (in_.size() >= limits_.head_bytes) return Head::kTooLarge;
    searched = in_.size() < 3 ? 0 : in_.size() - 3;
    std::array<char, kReceive> piece{};
    const ssize_t got = receive(piece.data(), piece.size(), until);
    if (got <= 0) return begun && timed_out_ ? Head::kTooSlow : Head::kClosed;
    in_.append(piece.data(), static_cast<std::size_t>(got));
    if (begun) continue;
    begun = true;
    until = Clock::now() + limits_.head_time;
    body_deadline_ = Clock::now() + limits_.body_time;
  }
}

void Connection::note_head(std::size_t end) {
  head_left_ = end;
  const std::string_view head(in_.data(), end - 2);
  chunked_ = !header_in(head, "transfer-encoding").empty();
  client_closes_ = header_in(head, "connection") == "close";
  const std::string_view length = header_in(head, "content-length");
  const auto [last, error] = std::from_chars(length.data(), length.data() + length.size(), body_length_);
  // What is no length is never read to its end, so the connection is not used again.
  if (!length.empty() && (error != std::errc{} || last != length.data() + length.size()))
    body_length_ = std::numeric_limits<std::size_t>::max();
}

ssize_t Connection::read(char* out, std::size_t size) {
  if (head_left_ > 0) {
    size = std::min(size, head_left_);
    std::memcpy(out, in_.data() + in_at_, size);
    in_at_ += size;
    head_left_ -= size;
    return static_cast<ssize_t>(size);
  }
  if (!chunked_) size = std::min(size, body_length_ - std::min(body_read_, body_length_));
  if (size == 0) return 0;
  if (in_at_ < in_.size()) {
    size = std::min(size, in_.size() - in_at_);
    std::memcpy(out, in_.data() + in_at_, size);
    in_at_ += size;
    body_read_ += size;
    return static_cast<ssize_t>(size);
  }
  if (!flush()) return -1;  // "100 Continue" may be what the client waits for
  const ssize_t got = receive(out, size, body_deadline_);
  if (got > 0) body_read_ += static_cast<std::size_t>(got);
  return got;
}

ssize_t Connection::write(const char* data, std::size_t size) {
  if (broken_) return -1;
  // The library writes an answer's head as one piece, and has no other way to say that the rest comes in
  // chunks.
  if (!head_written_)
    streaming_ =
        std::string_view(data, size).find("\r\nTransfer-Encoding: chunked\r\n") != std::string_view::npos;
  head_written_ = true;
  out_.append(data, size);
  if ((streaming_ || out_.size() >= kFlushAt) && !flush()) return -1;
  return static_cast<ssize_t>(size);
}

bool Connection::client_gone() const {
  pollfd set{socket_, POLLRDHUP, 0};  // POLLHUP and POLLERR are always told
  return ::poll(&set, 1, 0) > 0;
}

bool Connection::flush() {
  if (out_.empty()) return !broken_;
  const bool sent = send_all(out_.data(), out_.size(), Clock::now() + limits_.write_time);
  out_.clear();
  if (out_.capacity() > kFlushAt) out_.shrink_to_fit();
  return sent;
}

void Connection::close_gently() {
  if (!flush() || ssl_) return;
  ::shutdown(socket_, SHUT_WR);
  const SteadyTime until = Clock::now() + kLinger;
  std::array<char, kReceive> dropped{};
  for (std::size_t total = 0; total < kLingerBytes;) {
    const ssize_t got = receive(dropped.data(), dropped.size(), until);
    if (got <= 0) return;
    total += static_cast<std::size_t>(got);
  }
}

std::string Connection::remote_address() const { return address_of(socket_, &::getpeername).first; }

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  std::tie(ip, port) = address_of(socket_, &::getpeername);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  std::tie(ip, port) = address_of(socket_, &::getsockname);
}

}  // namespace commtune::api::rest
