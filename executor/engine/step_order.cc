#include "executor/engine/step_order.h"

#include <algorithm>

#include "perfmodel/common_parts.h"

namespace commtune {

StepOrder::StepOrder(const Plan& plan)
    : sequence_(plan.sequence),
      order_(plan.order),
      priority_(plan.priority),
      steps_(sequence_.empty() ? plan.messages.size() : sequence_.size()),
      released_(plan.messages.size(), false),
      reduced_(plan.messages.size(), false) {
  waiting_.reserve(plan.messages.size());
  const CommonParts common = common_parts(plan);
  pulled_of_.resize(common.of_pull.size());
  for (const CommonPart& part : common.parts) pulled_of_[part.pull].push_back(part.message);
}

void StepOrder::begin() {
  started_ = 0;
  waiting_.clear();
  std::fill(released_.begin(), released_.end(), false);
  std::fill(reduced_.begin(), reduced_.end(), false);
}

void StepOrder::release(std::uint32_t message) {
  released_[message] = true;
  if (order_ != Order::kPriority) return;
  const auto later = [&](std::uint32_t a, std::uint32_t b) { return priority_[a] > priority_[b]; };
  waiting_.push_back(message);
  std::push_heap(waiting_.begin(), waiting_.end(), later);
}

std::optional<NextStep> StepOrder::next() const {
  if (order_ == Order::kPriority) {
    if (waiting_.empty()) return std::nullopt;
    return NextStep{waiting_.front()};
  }
  if (all_started()) return std::nullopt;
  if (!sequence_.empty()) return next_of_sequence();
  const auto message = static_cast<std::uint32_t>(started_);
  if (!released_[message]) return std::nullopt;
  return NextStep{message};
}

std::optional<NextStep> StepOrder::next_of_sequence() const {
  const Step& step = sequence_[started_];
  const bool may = step.stage == Stage::kReduce ? released_[step.message] : may_distribute(step.message);
  if (!may) return std::nullopt;
  return NextStep{step.message, step.stage, false};
}

bool StepOrder::may_distribute(std::uint32_t number) const {
  if (pulled_of_.empty()) return reduced_[number];
  return std::ranges::all_of(pulled_of_[number], [&](std::uint32_t message) { return reduced_[message]; });
}

void StepOrder::started() {
  ++started_;
  if (order_ != Order::kPriority) return;
  const auto later = [&](std::uint32_t a, std::uint32_t b) { return priority_[a] > priority_[b]; };
  std::pop_heap(waiting_.begin(), waiting_.end(), later);
  waiting_.pop_back();
}

}  // namespace commtune
