#include "executor/transport/transport.h"

#include <fmt/format.h>

#include <algorithm>

namespace commtune {

Seconds time_to_connect(Deadline until, Seconds most) {
  constexpr Seconds kLeast{1e-3};
  return std::clamp(Seconds(until - Clock::now()), kLeast, most);
}

std::string describe(const Peers& peers, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return fmt::format("rank {} (host {})", rank, index < peers.hosts.size() ? peers.hosts[index] : "?");
}

Error run_ended(const Peers& peers, int peer, const std::string& why) {
  constexpr std::string_view kEnded = " ended the run: ";
  if (why.find(kEnded) != std::string::npos) return {ErrorCode::kPeerLost, why};
  return {ErrorCode::kPeerLost, fmt::format("{}{}{}", describe(peers, peer), kEnded, why)};
}

}  // namespace commtune
