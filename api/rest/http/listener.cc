#include "api/rest/http/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "api/rest/http/connection_threads.h"
#include "api/rest/http/http_connection.h"
#include "api/rest/http/listening_socket.h"
#include "api/rest/http/reply_writer.h"

namespace commtune::api::rest {
namespace {

constexpr std::chrono::milliseconds kIdleWhenCrowded{1000};
constexpr int kBreathMilliseconds = 20;  // where the process has no descriptor left for who has come
constexpr std::size_t kLongestTarget = 8192;

Head head_of(HttpConnection& connection) {
  const RequestHead& request = connection.head();
  Head head;
  head.method = request.method;
  head.target = request.target;
  head.address = connection.remote_address();
  head.content_length = request.content_length;
  head.header = [&request](const char* name) { return std::string(request.field(name)); };
  head.client_gone = [&connection] { return connection.client_gone(); };
  return head;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Readable once the service stops.
class StopEvent {
 public:
  StopEvent() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~StopEvent() { ::close(descriptor_); }
  StopEvent(const StopEvent&) = delete;
  StopEvent& operator=(const StopEvent&) = delete;
  int descriptor() const { return descriptor_; }
  void raise() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof(one));
  }

 private:
  const int descriptor_;
};

}  // namespace

class Listener::Inside {
 public:
  Inside(const ServeOptions& options, Application& application)
      : options_(options),
        application_(application),
        tls_(make_ssl_context(options)),
        socket_(options),
        writer_(options.idle_time),
        threads_(static_cast<std::size_t>(options.max_connections) + 64) {}

  int port() const { return socket_.port(); }
  int connections() const { return connections_; }

  void run() {
    while (!stopping_) {
      std::array<pollfd, 2> sets{pollfd{socket_.descriptor(), POLLIN, 0},
                                 pollfd{stop_.descriptor(), POLLIN, 0}};
      if (::poll(sets.data(), sets.size(), -1) > 0 && sets[0].revents != 0) accept();
    }
    threads_.shutdown();
  }

  void stop() {
    stopping_ = true;
    stop_.raise();
  }

 private:
  void accept() {
    const int client = socket_.accept();
    if (client < 0) {
      pollfd stop{stop_.descriptor(), POLLIN, 0};
      if (errno == EMFILE || errno == ENFILE) ::poll(&stop, 1, kBreathMilliseconds);
      return;
    }
    try {
      threads_.enqueue([this, client] { serve(client); });
    } catch (const std::system_error&) {
      ::close(client);
    }
  }

  void serve(int client) {
    HttpConnection connection(client, std::unique_ptr<SSL, FreeSsl>(tls_ ? SSL_new(tls_.get()) : nullptr),
                              stop_.descriptor(), options_.connection);
    const bool room = connections_.fetch_add(1) < options_.max_connections;
    if (connection.handshake()) {
      const std::string stranger = socket_.refusal(client);
      if (!stranger.empty()) {
        refuse(connection, 403, stranger);
      } else if (!room) {
        refuse(connection, 503);
      } else {
        serve_requests(connection);
      }
    }
    connections_.fetch_sub(1);
  }

  void serve_requests(HttpConnection& connection) {
    while (!stopping_) {
      const bool crowded = connections_ > options_.max_connections / 4 * 3;
      const HttpConnection::Head head =
          connection.read_head(crowded ? std::min(kIdleWhenCrowded, options_.idle_time) : options_.idle_time);
      if (head == HttpConnection::Head::kClosed) return;
      if (const int status = refusal_of(head, connection))
        return refuse(connection, status, connection.malformed());
      if (!answer(connection)) break;
    }
    connection.close_gently();
  }

  /// 0 for a head that can be answered.
  static int refusal_of(HttpConnection::Head head, const HttpConnection& connection) {
    switch (head) {
      case HttpConnection::Head::kTooLarge:
        return 431;
      case HttpConnection::Head::kTooSlow:
        return 408;
      case HttpConnection::Head::kMalformed:
        return 400;
      case HttpConnection::Head::kClosed:
      case HttpConnection::Head::kComplete:
        break;
    }
    return connection.head().target.size() > kLongestTarget ? 414 : 0;
  }

  /// False when the connection ends after it.
  bool answer(HttpConnection& connection) {
    const Head head = head_of(connection);
    std::optional<Reply> reply;
    try {
      reply = application_.without_body(head);
      if (!reply) {
        auto body = connection.read_body();
        reply = body ? application_.with_body(head, std::move(*body)) : lost_body(connection);
      }
    } catch (const std::exception&) {
      reply = application_.refuse(500, "");
    }
    const bool closes = connection.is_used_up() || stopping_;
    return writer_.write(connection, std::move(*reply), closes) && connection.flush() && !closes;
  }

  Reply lost_body(const HttpConnection& connection) {
    return connection.timed_out() ? application_.refuse(408, "")
                                  : application_.refuse(400, "the body ended early");
  }

  /// Where the next request would begin is not known.
  void refuse(HttpConnection& connection, int status, std::string_view why = {}) {
    writer_.write(connection, application_.refuse(status, why), true);
    connection.close_gently();
  }

  const ServeOptions options_;
  Application& application_;
  const SslContext tls_;
  const ListeningSocket socket_;
  ReplyWriter writer_;
  const StopEvent stop_;
  std::atomic<int> connections_{0};
  std::atomic<bool> stopping_{false};
  ConnectionThreads threads_;  // ended by run()
};

Listener::Listener(const ServeOptions& options, Application& application) {
  raise_descriptor_limit();
  ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that clients have closed
  inside_ = std::make_unique<Inside>(options, application);
}

Listener::~Listener() = default;

int Listener::port() const { return inside_->port(); }
int Listener::connections() const { return inside_->connections(); }
void Listener::run() { inside_->run(); }
void Listener::stop() { inside_->stop(); }

}  // namespace commtune::api::rest
