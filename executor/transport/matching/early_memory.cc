#include "executor/transport/matching/early_memory.h"

#include <algorithm>
#include <utility>

namespace commtune::matching {
namespace {

/// Less the allocator has at hand.
constexpr std::size_t kLeast = 4096;
/// As many chunks as come early where some peers are a step ahead; what a burst needed goes back.
constexpr std::size_t kMost = 64;

}  // namespace

std::vector<std::byte> EarlyMemory::take(std::size_t bytes) {
  const auto fitting = std::find_if(spare_.rbegin(), spare_.rend(), [&](const auto& spare) {
    return bytes >= kLeast && spare.capacity() >= bytes;
  });
  if (fitting == spare_.rend()) return std::vector<std::byte>(bytes);
  std::swap(*fitting, spare_.back());
  std::vector<std::byte> memory = std::move(spare_.back());
  spare_.pop_back();
  memory.resize(bytes);
  return memory;
}

void EarlyMemory::give(std::vector<std::byte> memory) {
  if (memory.size() >= kLeast && spare_.size() < kMost) spare_.push_back(std::move(memory));
}

}  // namespace commtune::matching
