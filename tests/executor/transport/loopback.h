#pragma once
// TCP sockets of the test's own, on the loopback interface.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace commtune::tests {

/// Closed by its owner.
class LoopbackSocket {
 public:
  explicit LoopbackSocket(int fd) : fd_(fd) {
    if (fd_ < 0) throw std::runtime_error("a socket of the test's own cannot be had");
  }
  LoopbackSocket(LoopbackSocket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  ~LoopbackSocket() {
    if (fd_ >= 0) close(fd_);
  }
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(LoopbackSocket&&) = delete;
  int get() const { return fd_; }

  /// What limits the bytes that the kernel holds unsent.
  int unsent_limit() const {
    int value = -1;
    socklen_t length = sizeof value;
    getsockopt(fd_, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &length);
    return value;
  }

 private:
  int fd_;
};

class LoopbackListener {
 public:
  LoopbackListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    if (bind(socket_.get(), as_address(), sizeof address_) != 0 || listen(socket_.get(), 8) != 0 ||
        getsockname(socket_.get(), as_address(), &length) != 0)
      throw std::runtime_error("the loopback interface has no port to listen at");
  }
  std::uint16_t port() const { return ntohs(address_.sin_port); }

  /// Both ends of a new connection.
  struct Connection {
    LoopbackSocket from, to;
  };
  Connection connection() {
    LoopbackSocket from(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(from.get(), as_address(), sizeof address_) != 0)
      throw std::runtime_error("the loopback interface refuses a connection");
    return {std::move(from), LoopbackSocket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC))};
  }

 private:
  sockaddr* as_address() { return reinterpret_cast<sockaddr*>(&address_); }

  LoopbackSocket socket_;
  sockaddr_in address_{};
};

}  // namespace commtune::tests
