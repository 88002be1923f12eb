#pragma once
// How `tune serve` is set up.

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/rest/http/connection_limits.h"

namespace commtune::api::rest {

enum class Authentication {
  kAuto,   ///< on loopback only for what acts (the scope operate), elsewhere for everything
  kToken,  ///< for everything
};

/// A Unix socket in place of an address: for this machine alone, or behind a proxy.
struct UnixSocket {
  std::filesystem::path path;
  std::string owner;               ///< "USER", "USER:GROUP" or ":GROUP"; empty: as the service is
  unsigned mode = 0600;            ///< who may connect, as the system sees it
  std::vector<std::string> users;  ///< who may besides the service's own user; names or numbers
};

/// What one token may hold; 0: nothing of it. Far more than a scheduler with honest jobs needs in years, and
/// little enough for a disk.
struct QuotaLimits {
  int profiles = 1'000;
  int plans = 10'000;
  int runs = 100'000;
  int waiting_jobs = 100;
  int answers = 10'000;  ///< kept for a day under their Idempotency-Key
};

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                        ///< 0: the system picks one
  std::optional<UnixSocket> unix_socket;  ///< then host and port count for nothing
  Authentication authentication = Authentication::kAuto;
  bool start_token = true;                         ///< make a token of this start, which allows all
  std::filesystem::path tls_certificate, tls_key;  ///< both or none
  bool allow_plain_http = false;  ///< off the loopback address without TLS: tokens can be read on the way
  int max_connections = 2048;
  std::size_t max_body = 8U << 20U;  ///< bytes
  double rate_per_token = 1000;      ///< requests per second that a token may make, 2 s of them at once
  int planning_threads = 0;          ///< questions answered at a time; 0: as many as processors
  QuotaLimits quotas;
  std::chrono::milliseconds plan_time{60'000};     ///< for a request's plans; then the best so far
  std::chrono::milliseconds compute_time{30'000};  ///< for a request's what-ifs, and for its wait before
  std::chrono::milliseconds idle_time{60'000};     ///< between two requests of a connection
  std::chrono::milliseconds slow_request{500};     ///< logged when it takes longer
  bool log_json = false;
  bool log_requests = false;  ///< every one of them
  ConnectionLimits connection;

  /// Throws Error{kBadInput} naming field, value and rule.
  void check() const;
};

/// "127.0.0.1:8080", "[::1]:0", ":8080" (all addresses), "8080" (loopback), "unix:PATH". Throws
/// Error{kBadInput}.
void set_listen_address(ServeOptions& options, const std::string& text);

/// True for 127.0.0.0/8 in four numbers, ::1 (without brackets), and "localhost" in any case, with or without
/// a trailing dot. False for all else: a page of another site may use a name that only looks like one of
/// them.
bool is_loopback(std::string_view host);
/// "0660": an octal number up to 0777. Throws Error{kBadInput} naming the flag.
unsigned socket_mode_of(const std::string& text);
/// True where only this machine can come in, by itself or through a proxy: the loopback address or a Unix
/// socket.
bool is_local(const ServeOptions& options);
/// The host of a Host header: "127.0.0.1:8080" -> "127.0.0.1", "[::1]:80" -> "::1". Nothing when it is
/// malformed.
std::optional<std::string> host_of(std::string_view authority);

}  // namespace commtune::api::rest
