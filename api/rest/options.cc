#include "api/rest/options.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "perfmodel/error.h"

namespace commtune::api::rest {
namespace {

void require(bool holds, std::string_view what) {
  if (!holds) throw Error(ErrorCode::kBadInput, std::string(what));
}

}  // namespace

void ServeOptions::check() const {
  require(tls_certificate.empty() == tls_key.empty(), "--tls-cert and --tls-key: give both or none");
  require(max_connections >= 1 && max_connections <= 65'536,
          fmt::format("--max-connections {}: must be 1 to 65536", max_connections));
  require(max_body >= 1024 && max_body <= (1U << 30U),
          fmt::format("--max-body {} B: must be 1 KiB to 1 GiB", max_body));
  require(rate_per_token > 0,
          fmt::format("--rate {}: must be more than 0 requests a second", rate_per_token));
  require(compute_time.count() >= 1,
          fmt::format("--compute-time {} ms: must be at least 1 ms", compute_time.count()));
  require(planning_threads >= 0 && planning_threads <= 1024,
          fmt::format("--planning-threads {}: must be 0 to 1024", planning_threads));
}

void set_listen_address(ServeOptions& options, const std::string& text) {
  const auto fail = [&] {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("--listen \"{}\": expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080", text));
  };
  std::string_view rest = text;
  std::string host = "127.0.0.1";
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find("]:");
    if (end == std::string_view::npos) fail();
    host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 2);
  } else if (const std::size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    if (rest.find(':') != colon) fail();
    host = colon == 0 ? "0.0.0.0" : std::string(rest.substr(0, colon));
    rest.remove_prefix(colon + 1);
  }
  int port = -1;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (error != std::errc{} || end != rest.data() + rest.size() || port < 0 || port > 65'535) fail();
  options.host = host;
  options.port = port;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace commtune::api::rest
