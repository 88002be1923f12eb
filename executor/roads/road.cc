#include "executor/roads/road.h"

#include <algorithm>
#include <numeric>

namespace commtune {

namespace {

std::size_t divided_up(std::size_t bytes, std::size_t by) { return (bytes + by - 1) / by; }

}  // namespace

void RoadSettings::take(const TransferTraits& traits) {
  chunk = traits.chunk;
  uncut = traits.uncut;
  cuts = traits.cuts;
  window = traits.window;
}

std::size_t RoadSettings::chunk_for(std::size_t bytes, int parts) const {
  const std::size_t element = element_size(type).count;
  const std::size_t longest_segment = divided_up(bytes / element, static_cast<std::size_t>(parts));
  const std::size_t wanted = divided_up(longest_segment, static_cast<std::size_t>(cuts)) * element;
  const std::size_t least = std::min(uncut.count, chunk.count);
  return std::max(element, std::clamp<std::size_t>(wanted, least, chunk.count) / element * element);
}

AsyncOperation divided(const RoadSettings& settings, MemoryQueue& operations, Buffer sum) {
  if (settings.result == Result::kSum) return {};
  return operations.scale(settings.type, sum, 1.0F / static_cast<float>(settings.workers));
}

std::size_t chunks(std::size_t segment_bytes, std::size_t longest_chunk) {
  return divided_up(segment_bytes, longest_chunk);
}

Range chunk(Range segment, std::size_t longest_chunk, std::size_t index) {
  constexpr std::size_t kCacheLine = 64;
  // Both are whole elements, and so is what divides both.
  const std::size_t unit = std::gcd(std::gcd(longest_chunk, segment.length), kCacheLine);
  const std::size_t units = divided_up(segment.length / unit, chunks(segment.length, longest_chunk));
  const std::size_t begin = index * units * unit;
  return {segment.offset + begin, std::min(units * unit, segment.length - begin)};
}

}  // namespace commtune
