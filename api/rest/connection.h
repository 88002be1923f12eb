#pragma once
// One client's connection, plain or TLS: what the HTTP library reads from and writes to. Every wait has a
// deadline, and the head of a request is read whole before anybody looks at it, so a slow client costs a
// thread that sleeps and a buffer, never more.

#include <openssl/ssl.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "api/rest/connection_limits.h"

// clang-format off
#include <httplib.h>
// clang-format on

namespace commtune::api::rest {

using SteadyTime = std::chrono::steady_clock::time_point;

struct FreeSsl {
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};

class Connection : public httplib::Stream {
 public:
  /// socket      owned: closed with the object
  /// ssl         null for plain text; its handshake is still to be done
  /// stop        readable once the service stops: all waits then end
  Connection(int socket, std::unique_ptr<SSL, FreeSsl> ssl, int stop, const ConnectionLimits& limits);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// False when the handshake fails or takes longer than a head may.
  bool handshake();

  enum class Head { kComplete, kClosed, kTooLarge, kTooSlow };
  /// Waits up to `idle` for a request's first byte, then for its whole head.
  Head read_head(std::chrono::milliseconds idle);

  /// True when the client wants no more of this connection, or part of its request was never read.
  bool is_used_up() const {
    return client_closes_ || head_left_ > 0 || body_read_ < body_length_ || chunked_;
  }
  /// True once the client has closed its side or the connection has broken; never waits.
  bool client_gone() const;
  bool flush();
  /// Says that no more is coming and lets the client read what was sent.
  void close_gently();
  std::string remote_address() const;

  // httplib::Stream
  bool is_readable() const override { return true; }
  bool is_writable() const override { return !broken_; }
  ssize_t read(char* out, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  /// Not the real descriptor: the library refuses those beyond select()'s range, and only compares it.
  int socket() const override { return 0; }

 private:
  enum class Wish { kRead, kWrite };
  enum class Wait { kReady, kTimeout, kStopped };
  Wait wait(Wish wish, SteadyTime until) const;
  /// recv or SSL_read: bytes, 0 at the end, -1 on failure or past the deadline.
  ssize_t receive(char* out, std::size_t size, SteadyTime until);
  bool send_all(const char* data, std::size_t size, SteadyTime until);
  void note_head(std::size_t end);

  const int socket_;
  const std::unique_ptr<SSL, FreeSsl> ssl_;
  const int stop_;
  const ConnectionLimits limits_;
  std::string in_;             // received and not yet read
  std::size_t in_at_ = 0;      // read so far
  std::size_t head_left_ = 0;  // of the head that is being read
  std::string out_;            // written and not yet sent
  SteadyTime body_deadline_{};
  std::size_t body_length_ = 0, body_read_ = 0;
  bool chunked_ = false;
  bool client_closes_ = false;  // its head says so
  bool head_written_ = false;   // of the answer
  bool streaming_ = false;      // the answer comes in pieces, each of which goes out at once
  bool broken_ = false;
  bool timed_out_ = false;
};

}  // namespace commtune::api::rest
