#include "perfmodel/simulate/workload.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "perfmodel/common_parts.h"

namespace commtune {

namespace {

std::uint32_t lowest_layer_of(const Message& message, const Workload& work) {
  std::uint32_t lowest = std::numeric_limits<std::uint32_t>::max();
  for (const Piece& piece : message.pieces) lowest = std::min(lowest, work.tensors[piece.tensor].layer);
  return lowest;
}

}  // namespace

Workload::Workload(const Profile& profile, const JobSlowdown& slowdown)
    : contention(slowdown.contention), lateness(slowdown.lateness), tensors(tensors_of(profile)) {
  const double scale = slowdown.compute / (1 + slowdown.contention);
  const std::size_t n = profile.layers.size();
  ready.resize(n);
  tail.resize(n);
  layer_bytes.assign(n, 0);
  for (const Layer& layer : profile.layers) {
    forward.push_back(scale * layer.forward.count());
    backward.push_back(scale * layer.backward.count());
    update.push_back(scale * layer.update.count());
    total_update += update.back();
  }
  for (std::size_t i = n; i-- > 0;) {
    ready[i] = total_backward += backward[i];
    total_forward += forward[i];
    tail[i] = (i + 1 < n ? tail[i + 1] : 0) + update[i] + forward[i];
  }
  for (const TensorRef& tensor : tensors) {
    layer_bytes[tensor.layer] += tensor.bytes.count;
    total_bytes += tensor.bytes.count;
  }
}

FlatPlan::FlatPlan(const Plan& plan, const Workload& work)
    : sequence(plan.sequence),
      server(plan.server),
      release(plan.release),
      order(plan.order),
      barrier(plan.barrier),
      credit(plan.credit.count) {
  window.reserve(plan.window.size());
  for (const Bytes own : plan.window) window.push_back(own.count);
  reserve(plan.messages.size());
  for (const Message& message : plan.messages) {
    add_message(wire_bytes(plan, message).count, lowest_layer_of(message, work),
                !is_one_stretch(message, work.tensors));
  }
  if (!plan.pulls.empty()) add_pulls(plan, work);
  if (order != Order::kPriority) return;
  rank_by(plan.priority);
}

void FlatPlan::add_pulls(const Plan& plan, const Workload& work) {
  for (const Message& pull : plan.pulls) {
    pulls.bytes.push_back(wire_bytes(plan, pull).count);
    pulls.lowest_layer.push_back(lowest_layer_of(pull, work));
    pulls.copied.push_back(is_one_stretch(pull, work.tensors) ? 0 : 1);
  }
  const CommonParts common = common_parts(plan);
  for (const std::vector<std::uint32_t>& parts : common.of_pull)
    pulls.messages.push_back(static_cast<std::uint32_t>(parts.size()));
  pulls.of_message.resize(plan.messages.size());
  for (const CommonPart& part : common.parts) pulls.of_message[part.message].push_back(part.pull);
}

void FlatPlan::rank_by_layer() {
  rank.resize(messages());
  std::uint32_t next = 0;
  for (std::size_t end = messages(); end > 0;) {
    std::size_t first = end;
    while (first > 0 && lowest_layer[first - 1] == lowest_layer[end - 1]) --first;
    for (std::size_t i = first; i < end; ++i) rank[i] = next++;
    end = first;
  }
}

void FlatPlan::rank_by(const std::vector<std::int32_t>& priority) {
  const auto is_rank = [this](std::int32_t each) {
    return each >= 0 && static_cast<std::size_t>(each) < messages();
  };
  if (std::ranges::all_of(priority, is_rank)) {  // unique, so that they are ranks already
    rank.assign(priority.begin(), priority.end());
    return;
  }
  std::vector<std::uint32_t> urgent(messages());
  std::iota(urgent.begin(), urgent.end(), 0U);
  std::sort(urgent.begin(), urgent.end(),
            [&](std::uint32_t a, std::uint32_t b) { return priority[a] < priority[b]; });
  rank.resize(messages());
  for (std::uint32_t i = 0; i < urgent.size(); ++i) rank[urgent[i]] = i;
}

void FlatPlan::clear() {
  bytes.clear();
  lowest_layer.clear();
  copied.clear();
  rank.clear();
  sequence.clear();
  server.clear();
  window.clear();
  if (!pulls.empty()) pulls = {};
}

void FlatPlan::reserve(std::size_t count) {
  bytes.reserve(count);
  lowest_layer.reserve(count);
  copied.reserve(count);
}

void FlatPlan::add_message(std::uint64_t message_bytes, std::uint32_t lowest, bool is_copied) {
  bytes.push_back(message_bytes);
  lowest_layer.push_back(lowest);
  copied.push_back(is_copied ? 1 : 0);
}

}  // namespace commtune
