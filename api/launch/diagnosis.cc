#include "api/launch/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <vector>

namespace commtune::api {
namespace {

constexpr std::size_t kLinesKept = 400;

/// Lines of Open MPI's messages that carry nothing by themselves.
bool is_noise(const std::string& line) {
  static const std::regex kNoise(
      R"(^\s*$|^-{20,}$|^Primary job +terminated|^a non-zero exit code|^mpirun detected that one or more|^mpirun: Forwarding signal|^\[.*\] \d+ more process)");
  return std::regex_search(line, kNoise);
}

/// The first match of any line, as its capture groups.
std::optional<std::vector<std::string>> find(const Transcript& transcript, const std::regex& pattern) {
  for (const std::string& line : transcript.lines()) {
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) continue;
    std::vector<std::string> groups;
    for (const auto& group : match) groups.push_back(group.str());
    return groups;
  }
  return {};
}

bool says(const Transcript& transcript, std::string_view text) {
  return std::any_of(transcript.lines().begin(), transcript.lines().end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

/// True when `name` stands in the line as a word of its own.
bool mentions(const std::string& line, const std::string& name) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  for (auto at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
    const bool left = at == 0 || !is_part(line[at - 1]);
    const auto end = at + name.size();
    const bool right = end >= line.size() || !is_part(line[end]);
    if (left && right) return true;
  }
  return false;
}

/// Open MPI drops a host name's domain before it hands the name to ssh. An address stays whole.
std::string short_name(const std::string& host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
  return is_address ? host : host.substr(0, host.find('.'));
}

/// Hosts of the job that a line names together with what went wrong there.
struct HostTrouble {
  std::vector<std::string> hosts;
  std::string line;
};

HostTrouble hosts_in_trouble(const FailedLaunch& failed) {
  static const std::regex kTrouble(
      R"(ssh:|ssh_|port 22|Permission denied|Host key verification|No route to host|Connection (refused|timed out|closed|reset)|resolve|network namespace|[Uu]nreachable|not known|[Nn]o such)");
  HostTrouble trouble;
  for (const std::string& line : failed.transcript.lines()) {
    if (!std::regex_search(line, kTrouble)) continue;
    if (trouble.line.empty()) trouble.line = line;
    for (const Host& host : failed.hosts.hosts) {
      const bool is_new =
          std::find(trouble.hosts.begin(), trouble.hosts.end(), host.name) == trouble.hosts.end();
      if (is_new && (mentions(line, host.name) || mentions(line, short_name(host.name))))
        trouble.hosts.push_back(host.name);
    }
  }
  return trouble;
}

std::string own_words(const Transcript& transcript) {
  std::vector<std::string> kept;
  for (const std::string& line : transcript.lines())
    if (!is_noise(line) && kept.size() < 6) kept.push_back(line);
  return kept.empty() ? "nothing" : fmt::format("{}", fmt::join(kept, "\n  "));
}

Error unreachable(const FailedLaunch& failed) {
  const HostTrouble trouble = hosts_in_trouble(failed);
  const std::string advice =
      "check that it is up and that `ssh HOST true` works without a password, or take it out of the host "
      "list";
  if (!trouble.hosts.empty())
    return {ErrorCode::kPeerLost, fmt::format("host {} cannot be reached ({}); {}",
                                              fmt::join(trouble.hosts, ", "), trouble.line, advice)};
  if (!trouble.line.empty())
    return {ErrorCode::kPeerLost, fmt::format("a host cannot be reached ({}); {}", trouble.line, advice)};
  std::vector<std::string> names;
  for (const Host& host : failed.hosts.hosts) names.push_back(host.name);
  return {ErrorCode::kPeerLost,
          fmt::format("one of the hosts {} did not start its part; check that Open MPI is "
                      "installed there in the same version and reaches back to this machine",
                      fmt::join(names, ", "))};
}

std::optional<Error> missing_program(const FailedLaunch& failed) {
  const bool missing = says(failed.transcript, "was unable to find the specified executable") ||
                       says(failed.transcript, "was unable to launch the specified application") ||
                       says(failed.transcript, "could not access or execute an executable");
  if (!missing) return {};
  static const std::regex kNode(R"(^\s*[Nn]ode:?\s+(\S+))");
  static const std::regex kExecutable(R"(^\s*Executable:\s*(\S+))");
  const auto node = find(failed.transcript, kNode);
  const auto executable = find(failed.transcript, kExecutable);
  return Error(
      ErrorCode::kUnavailable,
      fmt::format("host {}: cannot execute {}; install commtune there at the same path",
                  node ? (*node)[1] : "unknown", executable ? (*executable)[1] : "the rank program"));
}

std::optional<Error> lost_rank(const FailedLaunch& failed) {
  static const std::regex kSignalled(
      R"(process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+) \(([^)]*)\))");
  if (const auto rank = find(failed.transcript, kSignalled))
    return Error(ErrorCode::kPeerLost, fmt::format("rank {} on host {} was ended by signal {} ({}); what was "
                                                   "measured until then is kept",
                                                   (*rank)[1], (*rank)[2], (*rank)[3], (*rank)[4]));
  static const std::regex kDaemon(R"(^\s*Remote daemon:.* on node (\S+))");
  if (const auto daemon = find(failed.transcript, kDaemon))
    return Error(
        ErrorCode::kPeerLost,
        fmt::format("host {} was lost: its connection to this machine broke; what was measured until "
                    "then is kept",
                    (*daemon)[1]));
  return {};
}

}  // namespace

void Transcript::add(std::string_view line) {
  lines_.emplace_back(line.substr(0, line.find_last_not_of('\r') + 1));  // ssh ends its lines in both
  if (lines_.size() > kLinesKept) lines_.pop_front();
}

Error diagnose(const FailedLaunch& failed) {
  if (says(failed.transcript, "plm_rsh_agent") && says(failed.transcript, "could not be found"))
    return {ErrorCode::kUnavailable,
            "no program to reach other hosts with: install ssh, or set OMPI_MCA_plm_rsh_agent"};
  if (auto missing = missing_program(failed)) return std::move(*missing);
  if (says(failed.transcript, "not enough slots available"))
    return {ErrorCode::kBadInput,
            "Open MPI counts fewer slots on these hosts than ranks were asked for; raise slots= in the host "
            "list"};
  if (says(failed.transcript, "unable to reliably start one or more daemons")) return unreachable(failed);
  if (auto lost = lost_rank(failed)) return std::move(*lost);
  if (failed.end.timed_out)
    return {ErrorCode::kTimeout,
            fmt::format("{} in time; {} said: {}",
                        failed.started ? "the ranks fell silent and did not end" : "the ranks did not start",
                        failed.program, own_words(failed.transcript))};
  const std::string how = failed.end.signal != 0 ? fmt::format("was ended by signal {}", failed.end.signal)
                                                 : fmt::format("ended with status {}", failed.end.status);
  return {ErrorCode::kUnavailable, fmt::format("{} {} without a result; it said: {}", failed.program, how,
                                               own_words(failed.transcript))};
}

}  // namespace commtune::api
