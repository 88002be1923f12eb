#include "tuner/methods/two_phase.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tuner/messages.h"

namespace commtune::tuner {

namespace {

std::size_t next_left(const std::vector<std::uint64_t>& left, std::size_t tensor) {
  while (tensor < left.size() && left[tensor] == 0) ++tensor;
  return tensor;
}

}  // namespace

BlockSplit::BlockSplit(const Planning& job, FusionCost cost, const Groups& backward)
    : work_(job.work),
      element_(element_size(job.profile.type).count),
      cost_(std::move(cost)),
      begin_(job.work.tensors.size(), 0) {
  left_.reserve(work_.tensors.size());
  for (const TensorRef& tensor : work_.tensors) left_.push_back(tensor.bytes.count);
  send_backward(backward);
}

std::vector<Message> BlockSplit::messages(std::uint64_t least) const {
  std::vector<Message> all = backward_;
  std::vector<std::uint64_t> left = left_;
  double now = now_, needed = now_;  // when the forward pass needs the next message's first layer
  for (std::size_t tensor = next_left(left, 0); tensor < left.size();) {
    const std::uint32_t layer = work_.tensors[tensor].layer;
    const std::uint64_t room = std::max({bytes_until(needed - now), least, rest_of(left, tensor)});
    all.push_back(forward_block(left, tensor, room));
    const Bytes bytes = message_bytes(all.back());
    const double back = std::max(needed, now + cost_.alone(bytes).count());
    now += cost_.occupancy(bytes).count();
    tensor = next_left(left, tensor);
    if (tensor < left.size()) needed = back + work_.tail[layer] - work_.tail[work_.tensors[tensor].layer];
  }
  return all;
}

std::uint64_t BlockSplit::smallest() const {
  const std::size_t first = next_left(left_, 0);
  return first == left_.size() ? element_ : rest_of(left_, first);
}

void BlockSplit::send_backward(const Groups& groups) {
  std::size_t tensor = left_.size();
  for (const std::size_t size : groups) {
    const double from = std::max(now_, work_.ready[work_.tensors[tensor - size].layer]);
    if (from >= work_.total_backward) break;
    std::uint64_t total = 0;
    for (std::size_t t = tensor - size; t < tensor; ++t) total += left_[t];
    const double end = from + cost_.occupancy(Bytes{total}).count();
    const bool crosses = end > work_.total_backward;
    take_from_back(tensor, crosses ? std::min(total, bytes_until(work_.total_backward - from)) : total);
    now_ = end;
    if (crosses) break;
    tensor -= size;
  }
  now_ = work_.total_backward;
}

/// A message of so many bytes from before this tensor, the last one first. A tensor is taken from its front.
void BlockSplit::take_from_back(std::size_t before, std::uint64_t bytes) {
  Message block;
  for (std::size_t t = before; t-- > 0 && bytes > 0;) {
    const std::uint64_t length = std::min(left_[t], bytes);
    block.pieces.push_back({static_cast<TensorId>(t), Bytes{0}, Bytes{length}});
    left_[t] -= length;
    begin_[t] = length;
    bytes -= length;
  }
  if (!block.pieces.empty()) backward_.push_back(std::move(block));
}

/// At most so many bytes of what is left, from this tensor on: the last tensor first and each one's end, so
/// that they are one stretch of memory.
Message BlockSplit::forward_block(std::vector<std::uint64_t>& left, std::size_t tensor,
                                  std::uint64_t room) const {
  Message block;
  for (; tensor < left.size() && room > 0; ++tensor) {
    const std::uint64_t length = std::min(left[tensor], room);
    if (length == 0) continue;
    left[tensor] -= length;
    room -= length;
    block.pieces.push_back(
        {static_cast<TensorId>(tensor), Bytes{begin_[tensor] + left[tensor]}, Bytes{length}});
  }
  std::reverse(block.pieces.begin(), block.pieces.end());
  return block;
}

/// What is left of the layer of a tensor from that one on.
std::uint64_t BlockSplit::rest_of(const std::vector<std::uint64_t>& left, std::size_t tensor) const {
  const std::uint32_t layer = work_.tensors[tensor].layer;
  std::uint64_t rest = 0;
  for (; tensor < left.size() && work_.tensors[tensor].layer == layer; ++tensor) rest += left[tensor];
  return rest;
}

/// Whole elements that are back so many seconds after they are sent.
std::uint64_t BlockSplit::bytes_until(double seconds) const {
  double most = 0;
  for (const CurvePiece& piece : cost_.alone.pieces()) {
    const double spare = seconds - piece.alpha.count(), all = static_cast<double>(work_.total_bytes);
    if (spare <= 0) continue;
    const double bytes = piece.beta.value > 0 ? std::min(all, spare / piece.beta.value) : all;
    if (bytes >= static_cast<double>(piece.from.count)) most = bytes;
  }
  if (cost_.alone.empty() && seconds > 0) return work_.total_bytes;
  return static_cast<std::uint64_t>(most) / element_ * element_;
}

Plan best_two_phase_plan(const Planning& job, const RoadOption& option, const BlockSplit& blocks,
                         Bytes credit) {
  Simulator simulator(job.work);
  const FlatRoad road(option.cost);
  std::optional<Plan> best;
  Seconds fastest = kNoLimit;
  std::uint64_t least = blocks.smallest();
  for (int i = 0; i < kLeastSizes; ++i, least *= 2) {
    Plan plan = job.empty_plan(option.road);
    plan.messages = blocks.messages(least);
    if (best && plan.messages == best->messages) continue;
    plan.priority = list_priorities(plan.messages.size());
    plan.barrier = Barrier::kPerLayer;
    plan.credit = credit;
    const Seconds time = simulator.time(FlatPlan(plan, job.work), road, fastest);
    if (best && time >= fastest) continue;
    best = std::move(plan);
    fastest = time;
    if (fastest <= option.floor() * (1 + kIndifferent)) break;
  }
  return *best;
}

}  // namespace commtune::tuner
