// The whole service without its sockets: the admission, the routes, the tuner and a database.

#include "api/rest/service.h"

#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/api/fuzz/targets.h"
#include "tests/api/rest/made_lab.h"
#include "tests/fuzz/require.h"
#include "tests/perfmodel/synthetic_profile.h"

namespace commtune::fuzz {
namespace {

using namespace api;

/// Until it has grown so much that it gets slow.
constexpr int kRequestsOfOne = 20'000;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::filesystem::path fresh_folder() {
  // In memory where that is possible: what is written is not what is tried here.
  const std::filesystem::path memory = "/dev/shm";
  const auto place = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
  auto folder = place / ("commtune-fuzz-" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  return folder;
}

class Playground {
 public:
  Playground() : folder_(fresh_folder()), log_(false, [](std::string_view) {}) {
    Store store = Store::open(folder_ / "store.db", {.version = "fuzz"});
    make_lab(store, synthetic_profile(2, Bytes{1 << 20}, Seconds{1e-3}, Seconds{2e-3}));
    options_.planning_threads = 1;
    options_.compute_time = std::chrono::milliseconds(50);  // what is computed is not what is tried here
    service_ = std::make_unique<rest::Service>(
        rest::ServiceParts{options_, settings_, environment_, "/bin/false", log_, "ct_start_1"},
        std::move(store));
  }
  ~Playground() {
    service_->stop();
    service_.reset();
    std::filesystem::remove_all(folder_);
  }
  Playground(const Playground&) = delete;
  Playground& operator=(const Playground&) = delete;

  rest::Reply ask(const rest::Head& head, const std::string& body) {
    if (auto reply = service_->without_body(head)) return std::move(*reply);
    return service_->with_body(head, body);
  }

 private:
  const std::filesystem::path folder_;
  rest::ServeOptions options_;
  Settings settings_;
  Environment environment_;
  rest::Log log_;
  std::unique_ptr<rest::Service> service_;
};

struct Asked {
  rest::Head head;
  std::string body;
};

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// As the listener would hand it over.
Asked read_request(std::string_view text) {
  Asked asked;
  const std::string_view first = take_line(text);
  const std::size_t space = std::min(first.find(' '), first.size());
  asked.head.method = first.substr(0, space);
  asked.head.target = first.substr(std::min(space + 1, first.size()));
  asked.head.address = "127.0.0.1";
  std::map<std::string, std::string> headers{
      {"host", "127.0.0.1"}, {"content-type", "application/json"}, {"authorization", "Bearer ct_start_1"}};
  for (std::string_view line = take_line(text); !line.empty(); line = take_line(text)) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string_view::npos)
      headers[lower(std::string(line.substr(0, colon)))] = line.substr(colon + 2);
  }
  asked.body = text;
  asked.head.content_length = asked.body.size();
  asked.head.header = [headers = std::move(headers)](const char* name) {
    const auto found = headers.find(lower(name));
    return found == headers.end() ? std::string() : found->second;
  };
  return asked;
}

}  // namespace

void service(std::string_view text) {
  static std::unique_ptr<Playground> playground;
  static int requests = 0;
  if (!playground || ++requests % kRequestsOfOne == 0) {
    playground.reset();  // before there is another one in its folder
    playground = std::make_unique<Playground>();
  }
  const Asked asked = read_request(text);
  const rest::Reply reply = playground->ask(asked.head, asked.body);
  require(reply.status >= 200 && reply.status < 500, "no request is answered with a defect");
  if (reply.stream) return;  // waits for events
  if (reply.type == "application/json" || reply.type == "application/problem+json")
    require(nlohmann::json::accept(reply.body), "an answer is JSON");
  for (const auto& [name, value] : reply.headers)
    require(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos, "a header is a line");
}

}  // namespace commtune::fuzz
