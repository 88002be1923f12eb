#pragma once
// One client's connection, plain or TLS: its requests are read from here and its answers written to it. Every
// wait has a deadline, and the head of a request is read whole before anybody looks at it, so a slow client
// costs a thread that sleeps and a buffer, never more.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/rest/http/connection_limits.h"
#include "api/rest/http/request_head.h"
#include "api/rest/http/tls.h"

namespace commtune::api::rest {

using SteadyTime = std::chrono::steady_clock::time_point;

class HttpConnection {
 public:
  /// socket      owned: closed with the object
  /// ssl         null for plain text; its handshake is still to be done
  /// stop        readable once the service stops: all waits then end
  HttpConnection(int socket, std::unique_ptr<SSL, FreeSsl> ssl, int stop, const ConnectionLimits& limits);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  /// False when the handshake fails or takes longer than a head may.
  bool handshake();

  enum class Head { kComplete, kClosed, kTooLarge, kTooSlow, kMalformed };
  /// Waits up to `idle` for a request's first byte, then for its whole head.
  Head read_head(std::chrono::milliseconds idle);
  /// The last one that was complete.
  const RequestHead& head() const { return head_; }
  /// What is wrong with a head that is malformed.
  const std::string& malformed() const { return malformed_; }

  /// The whole body of the request. Nothing when it ends early, or does not come in time (timed_out() then).
  std::optional<std::string> read_body();
  bool timed_out() const { return timed_out_; }

  /// True when the client wants no more of this connection, or part of its request was never read.
  bool is_used_up() const { return head_.closes || head_.coded || body_left_ > 0; }
  bool is_broken() const { return broken_; }
  /// True once the client has closed its side or the connection has broken; never waits.
  bool client_gone() const;

  /// Kept until flush(), or until there is much of it. False when the connection is broken.
  bool write(std::string_view text);
  /// The answer comes in pieces, each of which goes out at once.
  void begin_stream() { streaming_ = true; }
  bool flush();
  /// Says that no more is coming and lets the client read what was sent.
  void close_gently();
  std::string remote_address() const;

 private:
  enum class Wish { kRead, kWrite };
  enum class Wait { kReady, kTimeout, kStopped };
  Wait wait(Wish wish, SteadyTime until) const;
  /// recv or SSL_read: bytes, 0 at the end, -1 on failure or past the deadline.
  ssize_t receive(char* out, std::size_t size, SteadyTime until);
  bool send_all(const char* data, std::size_t size, SteadyTime until);
  Head note_head(std::size_t end);

  const int socket_;
  const std::unique_ptr<SSL, FreeSsl> ssl_;
  const int stop_;
  const ConnectionLimits limits_;
  std::string in_;    // received and not yet read
  RequestHead head_;  // of the request that is being answered
  std::string malformed_;
  std::size_t body_left_ = 0;  // of that request, still to be read
  SteadyTime body_deadline_{};
  std::string out_;         // written and not yet sent
  bool streaming_ = false;  // begin_stream()
  bool broken_ = false;
  bool timed_out_ = false;
};

}  // namespace commtune::api::rest
