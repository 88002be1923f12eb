#include "executor/transport/transport.h"

#include <fmt/format.h>

namespace commtune {

std::string describe(const Peers& peers, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return fmt::format("rank {} (host {})", rank, index < peers.hosts.size() ? peers.hosts[index] : "?");
}

}  // namespace commtune
