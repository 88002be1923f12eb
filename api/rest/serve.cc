#include "api/rest/serve.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

namespace commtune::api::rest {
namespace {

/// Waits for the button in a thread of its own, and stops the listener when it is pressed.
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
  std::thread thread_;  // last
};

}  // namespace

void serve(const ServiceParts& parts, Store store, Cancellation& cancellation,
           const std::function<void(std::string_view)>& on_ready) {
  parts.options.check();
  Service service(parts, std::move(store));
  Listener listener(parts.options, service);
  service.watch_connections([&listener] { return listener.connections(); });
  const std::string host = parts.options.host.find(':') != std::string::npos
                               ? fmt::format("[{}]", parts.options.host)
                               : parts.options.host;
  const std::string url = fmt::format("{}://{}:{}", parts.options.tls_certificate.empty() ? "http" : "https",
                                      host, listener.port());
  parts.log.say(Level::kInfo, "listening",
                {{"url", url}, {"authentication", std::string(service.needs_token() ? "token" : "none")}});
  if (parts.options.tls_certificate.empty() && !is_loopback(parts.options.host))
    parts.log.say(Level::kWarning, "not_encrypted",
                  {{"why", std::string("--allow-plain-http: tokens can be read on the way")}});
  on_ready(url);
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
