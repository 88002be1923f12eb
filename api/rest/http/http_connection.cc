#include "api/rest/http/http_connection.h"

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
#include <cerrno>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kReceive = 16U << 10U;
constexpr std::size_t kFlushAt = 256U << 10U;
constexpr milliseconds kLinger{1000};
constexpr std::size_t kLingerBytes = 1U << 20U;

std::string address_of(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr, text.data(), text.size());
    return text.data();
  }
  if (storage.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr, text.data(),
                text.size());
    return text.data();
  }
  return "local";
}

}  // namespace

HttpConnection::HttpConnection(int socket, std::unique_ptr<SSL, FreeSsl> ssl, int stop,
                               const ConnectionLimits& limits)
    : socket_(socket), ssl_(std::move(ssl)), stop_(stop), limits_(limits) {
  const int flags = ::fcntl(socket_, F_GETFL);
  ::fcntl(socket_, F_SETFL, flags | O_NONBLOCK);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (ssl_) SSL_set_fd(ssl_.get(), socket_);
}

HttpConnection::~HttpConnection() {
  if (ssl_ && !broken_) SSL_shutdown(ssl_.get());
  ::close(socket_);
}

HttpConnection::Wait HttpConnection::wait(Wish wish, SteadyTime until) const {
  for (;;) {
    std::array<pollfd, 2> sets{pollfd{socket_, static_cast<short>(wish == Wish::kRead ? POLLIN : POLLOUT), 0},
                               pollfd{stop_, POLLIN, 0}};
    const auto left = std::chrono::ceil<milliseconds>(until - SteadyClock::now());
    if (left.count() <= 0) return Wait::kTimeout;
    const int ready =
        ::poll(sets.data(), sets.size(), static_cast<int>(std::min<long long>(left.count(), 1 << 30)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Wait::kTimeout;
    if (sets[0].revents != 0) return Wait::kReady;
    if (sets[1].revents != 0) return Wait::kStopped;
  }
}

bool HttpConnection::handshake() {
  if (!ssl_) return true;
  const SteadyTime until = SteadyClock::now() + limits_.head_time;
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

ssize_t HttpConnection::receive(char* out, std::size_t size, SteadyTime until) {
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

bool HttpConnection::send_all(const char* data, std::size_t size, SteadyTime until) {
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

HttpConnection::Head HttpConnection::read_head(milliseconds idle) {
  head_ = {};
  body_left_ = 0;
  streaming_ = timed_out_ = false;
  bool begun = !in_.empty();
  SteadyTime until = SteadyClock::now() + (begun ? limits_.head_time : idle);
  if (begun) body_deadline_ = SteadyClock::now() + limits_.body_time;
  std::size_t searched = 0;  // bytes without an end of the head, whose lines all end as they should
  for (;;) {
    const std::size_t end = in_.find("\r\n\r\n", searched < 3 ? 0 : searched - 3);
    if (end != std::string::npos && end + 4 <= limits_.head_bytes) return note_head(end + 4);
    if (!may_begin_head(std::string_view(in_).substr(searched), searched > 0 ? in_[searched - 1] : '\0')) {
      malformed_ = "the head has a NUL, or a line that does not end with CR LF";
      return Head::kMalformed;
    }
    if (in_.size() >= limits_.head_bytes) return Head::kTooLarge;
    searched = in_.size();
    std::array<char, kReceive> piece{};
    const ssize_t got = receive(piece.data(), piece.size(), until);
    if (got <= 0) return begun && timed_out_ ? Head::kTooSlow : Head::kClosed;
    in_.append(piece.data(), static_cast<std::size_t>(got));
    if (begun) continue;
    begun = true;
    until = SteadyClock::now() + limits_.head_time;
    body_deadline_ = SteadyClock::now() + limits_.body_time;
  }
}

HttpConnection::Head HttpConnection::note_head(std::size_t end) {
  try {
    head_ = read_request_head(std::string_view(in_).substr(0, end));
  } catch (const Error& error) {
    malformed_ = error.what();
    return Head::kMalformed;
  }
  in_.erase(0, end);
  body_left_ = head_.content_length;
  return Head::kComplete;
}

std::optional<std::string> HttpConnection::read_body() {
  std::string body = in_.substr(0, std::min(in_.size(), body_left_));
  in_.erase(0, body.size());
  body_left_ -= body.size();
  if (body_left_ > 0 && head_.expects_continue && !(write("HTTP/1.1 100 Continue\r\n\r\n") && flush()))
    return {};
  std::array<char, kReceive> piece{};
  while (body_left_ > 0) {
    const ssize_t got = receive(piece.data(), std::min(piece.size(), body_left_), body_deadline_);
    if (got <= 0) return {};
    body.append(piece.data(), static_cast<std::size_t>(got));
    body_left_ -= static_cast<std::size_t>(got);
  }
  return body;
}

bool HttpConnection::write(std::string_view text) {
  if (broken_) return false;
  out_ += text;
  return (!streaming_ && out_.size() < kFlushAt) || flush();
}

bool HttpConnection::client_gone() const {
  pollfd set{socket_, POLLRDHUP, 0};  // POLLHUP and POLLERR are always told
  return ::poll(&set, 1, 0) > 0;
}

bool HttpConnection::flush() {
  if (out_.empty()) return !broken_;
  const bool sent = send_all(out_.data(), out_.size(), SteadyClock::now() + limits_.write_time);
  out_.clear();
  if (out_.capacity() > kFlushAt) out_.shrink_to_fit();
  return sent;
}

void HttpConnection::close_gently() {
  if (!flush() || ssl_) return;
  ::shutdown(socket_, SHUT_WR);
  const SteadyTime until = SteadyClock::now() + kLinger;
  std::array<char, kReceive> dropped{};
  for (std::size_t total = 0; total < kLingerBytes;) {
    const ssize_t got = receive(dropped.data(), dropped.size(), until);
    if (got <= 0) return;
    total += static_cast<std::size_t>(got);
  }
}

std::string HttpConnection::remote_address() const { return address_of(socket_); }

}  // namespace commtune::api::rest
