#pragma once
// Accepts connections and serves each in a thread of its own, so that a thousand slow clients are a thousand
// sleeping threads. cpp-httplib writes the answers (reply_writer.h); all else of HTTP is read and decided
// here.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/rest/http/message.h"
#include "api/rest/http/options.h"

namespace commtune::api::rest {

/// A request's head: what is known before its body is read.
struct Head {
  std::string method;  ///< as it was sent
  std::string target;  ///< path and query as they were sent
  std::string address;
  std::size_t content_length = 0;
  std::function<std::string(const char* name)> header;  ///< "" when absent
  std::function<bool()> client_gone;                    ///< nobody waits for the answer any more
};

/// What the listener asks about each request. Called from many threads at once.
class Application {
 public:
  virtual ~Application() = default;
  /// The answer, if it can be given without the body (mostly a refusal).
  virtual std::optional<Reply> without_body(const Head& head) = 0;
  virtual Reply with_body(const Head& head, std::string body) = 0;
  /// For what never became a request: too slow, too large, not HTTP.
  ///
  /// why  what is wrong with it; empty: the status says it
  virtual Reply refuse(int status, std::string_view why) = 0;
};

class Listener {
 public:
  /// Binds the address. Throws Error{kConflict} when it is in use, Error{kUnavailable} when it cannot be
  /// bound, Error{kBadInput} for a certificate or key that cannot be used.
  Listener(const ServeOptions& options, Application& application);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const;
  /// Serves until stop(); returns after the last connection has ended.
  void run();
  /// From any thread. Answers under way are still sent.
  void stop();

  int connections() const;

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace commtune::api::rest
