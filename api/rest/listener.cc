#include "api/rest/listener.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "api/rest/connection.h"
#include "api/rest/connection_threads.h"
#include "perfmodel/error.h"

namespace commtune::api::rest {
namespace {

constexpr int kBacklog = 4096;
constexpr std::chrono::milliseconds kIdleWhenCrowded{1000};

/// What connections share.
struct Shared {
  ServeOptions options;
  Application& application;
  int stop = -1;  // eventfd, readable once the service stops
  std::atomic<int> connections{0};
  std::atomic<bool> stopping{false};
};

Head head_of(const httplib::Request& request) {
  Head head;
  head.method = request.method;
  head.target = request.target;
  head.address = request.remote_addr;
  head.content_length = request.get_header_value<std::uint64_t>("Content-Length");
  head.lengths = request.get_header_value_count("Content-Length");
  head.header = [&request](const char* name) { return request.get_header_value(name); };
  head.client_gone = [&request] { return request.progress && !request.progress(0, 0); };
  return head;
}

void give(Reply reply, httplib::Response& response) {
  response.status = reply.status;
  for (auto& [name, value] : reply.headers) response.headers.emplace(std::move(name), std::move(value));
  if (!reply.stream) {
    response.body = std::move(reply.body);
    if (!reply.type.empty()) response.headers.emplace("Content-Type", std::move(reply.type));
    return;
  }
  response.set_chunked_content_provider(
      reply.type, [stream = std::move(reply.stream)](std::size_t, httplib::DataSink& sink) {
        const bool more =
            stream([&sink](std::string_view piece) { return sink.write(piece.data(), piece.size()); });
        if (!more) sink.done();
        return true;
      });
}

/// Everything comes to the application by way of the hook before the library's own routing: it is first
/// asked without the body, then, if it wants that, with it.
void set_up_routing(httplib::Server& server, Shared& shared) {
  const auto answer = [&shared](const httplib::Request& request, httplib::Response& response) {
    give(shared.application.with_body(head_of(request), request.body), response);
  };
  server.set_pre_routing_handler(
      [&shared, answer](const httplib::Request& request, httplib::Response& response) {
        // The library's object, which it made as a variable: ranges over answers made on the spot serve
        // nobody.
        auto& mutable_request =
            const_cast<httplib::Request&>(request);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
        mutable_request.ranges.clear();
        const Head head = head_of(request);
        if (auto reply = shared.application.without_body(head)) {
          if (head.content_length > 0 || request.has_header("Transfer-Encoding")) {
            mutable_request.headers.erase("Connection");
            mutable_request.headers.emplace("Connection", "close");
          }
          if (reply->stream) mutable_request.headers.erase("Accept-Encoding");
          give(std::move(*reply), response);
          return httplib::Server::HandlerResponse::Handled;
        }
        if (head.content_length > 0) return httplib::Server::HandlerResponse::Unhandled;
        answer(request, response);
        return httplib::Server::HandlerResponse::Handled;
      });
  server.Get(".*", answer).Post(".*", answer).Put(".*", answer).Patch(".*", answer).Delete(".*", answer);
  server.set_error_handler([&shared](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty() || response.content_provider_) return;
    // The library gave up: where the next request would begin is not known.
    give(shared.application.refuse(response.status), response);
    response.headers.emplace("Connection", "close");
  });
  server.set_exception_handler([&shared](const httplib::Request&, httplib::Response& response,
                                         const std::exception_ptr&) {  //
    give(shared.application.refuse(500), response);
  });
}

void send_refusal(Connection& connection, Application& application, int status) {
  const Reply reply = application.refuse(status);
  const std::string text = fmt::format(
      "HTTP/1.1 {} Refused\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
      reply.type, reply.body.size(), reply.body);
  connection.write(text.data(), text.size());
  connection.close_gently();
}

/// The library's server, with our own way of serving a connection.
template <class Base>
class OwnServer : public Base {
 public:
  template <class... Arguments>
  explicit OwnServer(Shared& shared, Arguments&&... arguments)
      : Base(std::forward<Arguments>(arguments)...), shared_(shared) {
    const auto most = static_cast<std::size_t>(shared.options.max_connections) + 64;
    this->new_task_queue = [most] { return new ConnectionThreads(most); };
    this->set_payload_max_length(shared.options.max_body);
    this->set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(shared.options.idle_time).count());
    this->set_keep_alive_max_count(1'000'000);
    set_up_routing(*this, shared);
  }

  /// Binds, and asks for a longer queue than the library does. The port, or -1 with errno set.
  int bind(const std::string& host, int port) {
    const int bound = port == 0 ? this->bind_to_any_port(host) : (this->bind_to_port(host, port) ? port : -1);
    if (bound > 0) ::listen(this->svr_sock_, kBacklog);
    return bound;
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, make_ssl(), shared_.stop, shared_.options.connection);
    const int others = shared_.connections.fetch_add(1);
    if (others >= shared_.options.max_connections) {
      if (connection.handshake()) send_refusal(connection, shared_.application, 503);
    } else if (connection.handshake()) {
      serve(connection);
    }
    shared_.connections.fetch_sub(1);
    return true;
  }

  std::unique_ptr<SSL, FreeSsl> make_ssl() {
    if constexpr (std::is_same_v<Base, httplib::SSLServer>)
      return std::unique_ptr<SSL, FreeSsl>(SSL_new(this->ssl_context()));
    else
      return nullptr;
  }

  void serve(Connection& connection) {
    while (!shared_.stopping) {
      const bool crowded = shared_.connections > shared_.options.max_connections / 4 * 3;
      const auto idle =
          crowded ? std::min(kIdleWhenCrowded, shared_.options.idle_time) : shared_.options.idle_time;
      const Connection::Head head = connection.read_head(idle);
      if (head == Connection::Head::kClosed) return;
      if (head != Connection::Head::kComplete) {
        send_refusal(connection, shared_.application, head == Connection::Head::kTooLarge ? 431 : 408);
        return;
      }
      bool closed = false;
      // A server's request has no progress to tell of: its place carries the connection to head_of().
      const auto connect = [&connection](httplib::Request& request) {
        request.progress = [&connection](std::uint64_t, std::uint64_t) { return !connection.client_gone(); };
      };
      const bool served = this->process_request(connection, shared_.stopping, closed, connect);
      if (!connection.flush()) return;
      if (!served || closed || connection.is_used_up()) break;
    }
    connection.close_gently();
  }

  Shared& shared_;
};

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

class Listener::Plumbing {
 public:
  Plumbing(const ServeOptions& options, Application& application)
      : shared{options, application, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), {}, {}} {
    if (options.tls_certificate.empty()) {
      server = start<httplib::Server>();
    } else {
      server = start<httplib::SSLServer>(options.tls_certificate.c_str(), options.tls_key.c_str());
    }
  }
  ~Plumbing() { ::close(shared.stop); }
  Plumbing(const Plumbing&) = delete;
  Plumbing& operator=(const Plumbing&) = delete;

  Shared shared;
  std::unique_ptr<httplib::Server> server;
  int port = 0;

 private:
  template <class Base, class... Arguments>
  std::unique_ptr<httplib::Server> start(Arguments&&... arguments) {
    auto own = std::make_unique<OwnServer<Base>>(shared, std::forward<Arguments>(arguments)...);
    const ServeOptions& options = shared.options;
    if constexpr (std::is_same_v<Base, httplib::SSLServer>) {
      if (!own->is_valid())
        throw Error(ErrorCode::kBadInput,
                    fmt::format("--tls-cert {} --tls-key {}: cannot be used together; both must be PEM files",
                                options.tls_certificate.string(), options.tls_key.string()));
      SSL_CTX_set_min_proto_version(own->ssl_context(), TLS1_2_VERSION);
      SSL_CTX_set_mode(own->ssl_context(),
                       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    }
    errno = 0;
    port = own->bind(options.host, options.port);
    if (port <= 0)
      throw Error(errno == EADDRINUSE ? ErrorCode::kConflict : ErrorCode::kUnavailable,
                  fmt::format("--listen {}:{}: cannot be bound: {}", options.host, options.port,
                              errno != 0 ? std::strerror(errno) : "no such address here"));
    return own;
  }
};

Listener::Listener(const ServeOptions& options, Application& application) {
  raise_descriptor_limit();
  plumbing_ = std::make_unique<Plumbing>(options, application);
}

Listener::~Listener() = default;

int Listener::port() const { return plumbing_->port; }
int Listener::connections() const { return plumbing_->shared.connections; }

void Listener::run() { plumbing_->server->listen_after_bind(); }

void Listener::stop() {
  plumbing_->shared.stopping = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(plumbing_->shared.stop, &one, sizeof(one));
  plumbing_->server->stop();
}

}  // namespace commtune::api::rest
