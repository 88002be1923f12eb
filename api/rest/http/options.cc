#include "api/rest/http/options.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

constexpr std::size_t kLongestSocketPath = sizeof(sockaddr_un::sun_path) - 1;

void require(bool holds, std::string_view what) {
  if (!holds) throw Error(ErrorCode::kBadInput, std::string(what));
}

}  // namespace

void ServeOptions::check() const {
  require(tls_certificate.empty() == tls_key.empty(), "--tls-cert and --tls-key: give both or none");
  require(!unix_socket || tls_certificate.empty(),
          "--tls-cert: what travels over a Unix socket is not encrypted");
  require(!tls_certificate.empty() || is_local(*this) || allow_plain_http,
          fmt::format("--listen {}: tokens could be read on the way over plain HTTP; give --tls-cert and "
                      "--tls-key, listen on the loopback address or a Unix socket behind a proxy that "
                      "encrypts, or allow it "
                      "with --allow-plain-http",
                      host));
  require(max_connections >= 1 && max_connections <= 65'536,
          fmt::format("--max-connections {}: must be 1 to 65536", max_connections));
  require(max_body >= 1024 && max_body <= (1U << 30U),
          fmt::format("--max-body {} B: must be 1 KiB to 1 GiB", max_body));
  require(rate_per_token > 0,
          fmt::format("--rate {}: must be more than 0 requests a second", rate_per_token));
  require(compute_time.count() >= 1,
          fmt::format("--compute-time {} ms: must be at least 1 ms", compute_time.count()));
  require(plan_time.count() >= 1, fmt::format("--plan-time {} ms: must be at least 1 ms", plan_time.count()));
  for (const auto& [flag, most] :
       {std::pair{"--max-profiles-per-token", quotas.profiles},
        std::pair{"--max-plans-per-token", quotas.plans}, std::pair{"--max-runs-per-token", quotas.runs},
        std::pair{"--max-waiting-jobs-per-token", quotas.waiting_jobs},
        std::pair{"--max-answers-per-token", quotas.answers}})
    require(most >= 0, fmt::format("{} {}: must be at least 0", flag, most));
  require(planning_threads >= 0 && planning_threads <= 1024,
          fmt::format("--planning-threads {}: must be 0 to 1024", planning_threads));
}

void set_listen_address(ServeOptions& options, const std::string& text) {
  const auto fail = [&] {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("--listen \"{}\": expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, or unix:PATH",
                    text));
  };
  constexpr std::string_view kUnix = "unix:";
  std::string_view rest = text;
  if (rest.starts_with(kUnix)) {
    rest.remove_prefix(kUnix.size());
    if (rest.empty() || rest.size() > kLongestSocketPath || rest.find('\0') != std::string_view::npos)
      throw Error(ErrorCode::kBadInput,
                  fmt::format("--listen \"{}\": expected unix:PATH with a path of 1 to {} B", text,
                              kLongestSocketPath));
    options.unix_socket = UnixSocket{};
    options.unix_socket->path = rest;
    return;
  }
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

unsigned socket_mode_of(const std::string& text) {
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  require(!text.empty() && error == std::errc{} && end == text.data() + text.size() && mode <= 0777,
          fmt::format("--socket-mode \"{}\": must be an octal number up to 0777, such as 0660", text));
  return mode;
}

bool is_local(const ServeOptions& options) { return options.unix_socket || is_loopback(options.host); }

bool is_loopback(std::string_view host) {
  std::string name(host.ends_with('.') ? host.substr(0, host.size() - 1) : host);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "localhost") return true;
  // inet_pton takes four numbers and nothing that only looks like them ("127.1", "127.evil.example"), but it
  // stops at a NUL.
  const std::string text(host);
  if (text.find('\0') != std::string::npos) return false;
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24U == 127;
  in6_addr six{};
  return ::inet_pton(AF_INET6, text.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::optional<std::string> host_of(std::string_view authority) {
  std::size_t end = authority.find(':');
  std::string_view host = authority.substr(0, end);
  if (authority.starts_with('[')) {
    end = authority.find(']');
    if (end == std::string_view::npos) return {};
    host = authority.substr(1, end - 1);
    ++end;
  }
  const std::string_view port = authority.substr(std::min(end, authority.size()));
  const bool digits = std::all_of(port.begin() + (port.empty() ? 0 : 1), port.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  if (host.empty() || (!port.empty() && port.front() != ':') || !digits) return {};
  return std::string(host);
}

}  // namespace commtune::api::rest
