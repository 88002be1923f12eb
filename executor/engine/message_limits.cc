#include "executor/engine/message_limits.h"

#include <algorithm>

#include "perfmodel/common_parts.h"

namespace commtune {

MessageLimits message_limits(const Plan& plan, const TensorLayout& layout, const RoadSettings& settings) {
  // No rank begins an iteration before every other has given its part of the one before: one may lag by two.
  // In each of them no road sends a peer more than twice a message in each of its two stages. What it sends
  // has at least a tag for each rank, and chunks that are no shorter than that.
  constexpr std::uint64_t kTimes = std::uint64_t{2} * 2 * 2;
  const std::size_t numbers = plan.pulls.empty() ? plan.messages.size() : common_parts(plan).parts.size();
  const std::uint64_t pieces = numbers * static_cast<std::uint64_t>(ranks_of(plan));
  const std::uint64_t once = layout.bytes().count + pieces * MessageLimits::kPerMessage.count;
  MessageLimits limits;
  limits.longest = std::max(limits.longest, settings.chunk);
  limits.early += Bytes{kTimes * once};
  return limits;
}

}  // namespace commtune
