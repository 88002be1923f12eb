#include "executor/transport/rank_gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/memory/cuda/gpu_memory.h"
#include "perfmodel/base/error.h"

namespace commtune {

int gpu_of_rank(const Peers& peers) {
  if (const std::string why = why_no_gpu(); !why.empty()) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{}: device = cuda: {}", describe(peers, peers.rank), why));
  }
  const auto own = static_cast<std::size_t>(peers.rank);
  const auto before = std::count(peers.node.begin(), peers.node.begin() + peers.rank, peers.node[own]);
  return static_cast<int>(before) % gpu_count();
}

}  // namespace commtune
