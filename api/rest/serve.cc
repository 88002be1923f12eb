#include "api/rest/serve.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <thread>

#include "api/rest/token_file.h"
#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

/// Waits in a thread of its own until a signal asks the service to end, and stops the listener then.
class StopWatch {
 public:
  StopWatch(Cancellation& cancellation, std::function<void()> stop)
      : cancellation_(cancellation), stop_(std::move(stop)), thread_([this] { watch(); }) {}
  ~StopWatch() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(ended_, &one, sizeof(one));
    thread_.join();
    ::close(ended_);
  }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

 private:
  void watch() {
    std::array<pollfd, 2> sets{pollfd{cancellation_.descriptor(), POLLIN, 0}, pollfd{ended_, POLLIN, 0}};
    while (::poll(sets.data(), sets.size(), -1) < 0 && errno == EINTR) {
    }
    if (cancellation_.requested()) stop_();
  }

  Cancellation& cancellation_;
  const std::function<void()> stop_;
  const int ended_ = ::eventfd(0, EFD_CLOEXEC);
  std::thread thread_;  // last: it uses the members above from its start on
};

std::string url_of(const ServeOptions& options, int port) {
  if (options.unix_socket) return "unix:" + options.unix_socket->path.string();
  const std::string host =
      options.host.find(':') != std::string::npos ? fmt::format("[{}]", options.host) : options.host;
  return fmt::format("{}://{}:{}", options.tls_certificate.empty() ? "http" : "https", host, port);
}

/// Null where there is no token, or no place for it.
std::unique_ptr<TokenFile> keep_start_token(const ServiceParts& parts, const std::filesystem::path& path) {
  if (parts.start_token.empty() || path.empty()) return {};
  try {
    return std::make_unique<TokenFile>(path, parts.start_token);
  } catch (const Error& error) {
    parts.log.say(Level::kWarning, "token_not_kept", {{"why", std::string(error.what())}});
    return {};
  }
}

}  // namespace

void serve(const ServiceParts& parts, Store store, Cancellation& cancellation,
           const std::function<void(const Ready&)>& on_ready) {
  parts.options.check();
  Service service(parts, std::move(store));
  Listener listener(parts.options, service);
  service.watch_connections([&listener] { return listener.connections(); });
  const std::string url = url_of(parts.options, listener.port());
  const std::filesystem::path token_path = start_token_path(parts.environment);
  const auto token_file = keep_start_token(parts, token_path);
  parts.log.say(Level::kInfo, "listening",
                {{"url", url}, {"authentication", std::string(service.needs_token() ? "token" : "operate")}});
  if (parts.options.tls_certificate.empty() && !is_local(parts.options))
    parts.log.say(Level::kWarning, "not_encrypted",
                  {{"why", std::string("--allow-plain-http: tokens can be read on the way")}});
  on_ready({url, parts.start_token, token_file ? token_path : std::filesystem::path{}});
  {
    const StopWatch watch(cancellation, [&] {
      parts.log.say(Level::kInfo, "stopping");
      service.stop();
      listener.stop();
    });
    listener.run();
  }
  service.stop();
  parts.log.say(Level::kInfo, "stopped");
}

}  // namespace commtune::api::rest
