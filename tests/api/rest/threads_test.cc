// The service and its listener asked by many at once: what the thread sanitizer looks at. tests/all runs it
// so, with the rest of api_test, in build-tsan. By hand, once that is there (tests/tsan.supp says what of the
// HTTP library is not reported):
//   ninja -C build-tsan api_test; export TSAN_OPTIONS=suppressions=$PWD/tests/tsan.supp
//   build-tsan/tests/api/api_test --gtest_filter='ServiceThreads.*:Permit.*'

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "api/rest/http/listener.h"
#include "api/rest/service.h"
#include "tests/api/rest/made_lab.h"
#include "tests/perfmodel/synthetic_profile.h"

namespace commtune::api::rest {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "commtune-threads-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Store made_store(const std::filesystem::path& folder) {
  Store store = Store::open(folder / "store.db", {.version = "test"});
  make_lab(store, synthetic_profile(2, Bytes{1 << 20}, Seconds{1e-3}, Seconds{2e-3}));
  return store;
}

ServeOptions options() {
  ServeOptions made;
  made.port = 0;
  made.planning_threads = 2;
  made.compute_time =
      std::chrono::hours(1);  // a plan waits for its turn: a minute under a sanitizer and load
  return made;
}

/// A service that listens on a port of its own.
class ServiceThreads : public testing::Test {
 protected:
  ServiceThreads()
      : log_(false, [](std::string_view) {}),
        service_({options_, settings_, environment_, "/bin/false", log_, "ct_start_1"},
                 made_store(folder_.path())),
        listener_(options_, service_),
        thread_([this] { listener_.run(); }) {
    service_.watch_connections([this] { return listener_.connections(); });
  }
  ~ServiceThreads() override {
    service_.stop();
    listener_.stop();
    thread_.join();
  }

  /// The status of each answer on one connection, and 0 where there was none.
  std::vector<int> ask(const std::vector<std::string>& requests) const {
    std::vector<int> statuses;
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(listener_.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      for (const std::string& request : requests) statuses.push_back(exchange(socket, request));
    ::close(socket);
    return statuses;
  }

 private:
  static int exchange(int socket, const std::string& request) {
    if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) < 0) return 0;
    std::string reply;
    std::array<char, 65536> piece{};
    for (;;) {
      const std::size_t head = reply.find("\r\n\r\n");
      const std::size_t length = reply.find("Content-Length: ");
      if (head != std::string::npos && length < head &&
          reply.size() >= head + 4 + std::stoul(reply.substr(length + 16)))
        return std::stoi(reply.substr(reply.find(' ') + 1));
      const ssize_t got = ::recv(socket, piece.data(), piece.size(), 0);
      if (got <= 0) return 0;
      reply.append(piece.data(), static_cast<std::size_t>(got));
    }
  }

  const Folder folder_;
  const ServeOptions options_ = options();
  const Settings settings_{};
  const Environment environment_{};
  Log log_;
  Service service_;
  Listener listener_;
  std::thread thread_;
};

std::string get_request(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
}

std::string post(const std::string& path, const nlohmann::json& body, const std::string& more = {}) {
  const std::string text = body.dump();
  return "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" + more +
         "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
}

TEST_F(ServiceThreads, AnswerManyClientsAtOnce) {
  constexpr int kClients = 8, kRounds = 4;
  std::atomic<int> failed{0};
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int round = 0; round < kRounds; ++round) {
        const nlohmann::json job{{"model", "1"}, {"cluster", "lab"}, {"draws", 2}};
        nlohmann::json other = job;
        other["seed"] = client * kRounds + round;
        const std::string key =
            "Authorization: Bearer ct_start_1\r\nIdempotency-Key: same-" + std::to_string(round) + "\r\n";
        for (const int status :
             ask({post("/v1/plans", job), post("/v1/plans", other), get_request("/v1/plans?limit=10"),
                  post("/v1/runs", {{"plan", 1}, {"iteration_seconds", {0.1, 0.2}}}),
                  get_request("/v1/runs/1"), get_request("/metrics"),
                  get_request("/v1/clusters/lab/fits?points=3"), post("/v1/profiles", {{"no", "profile"}}),
                  get_request("/readyz"), get_request("/v1/nothing"),
                  post("/v1/clusters/lab/probes", {{"budget_seconds", 1}}, key), get_request("/v1/jobs")}))
          if (status == 0 || status >= 500) ++failed;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace commtune::api::rest
