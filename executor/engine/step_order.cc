#include "executor/engine/step_order.h"

#include <algorithm>
#include <numeric>

namespace commtune {

StepOrder::StepOrder(const Plan& plan, std::vector<std::size_t> release_layer, std::size_t layers)
    : sequence_(plan.sequence),
      order_(plan.order),
      priority_(plan.priority),
      release_layer_(std::move(release_layer)),
      layers_(layers),
      steps_(sequence_.empty() ? release_layer_.size() : sequence_.size()),
      by_release_(release_layer_.size()),
      reduced_(release_layer_.size(), false) {
  std::iota(by_release_.begin(), by_release_.end(), 0U);
  std::stable_sort(by_release_.begin(), by_release_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return release_layer_[a] > release_layer_[b]; });
  waiting_.reserve(release_layer_.size());
}

void StepOrder::begin() {
  released_ = next_released_ = started_ = 0;
  waiting_.clear();
  std::fill(reduced_.begin(), reduced_.end(), false);
}

void StepOrder::release(std::size_t count) {
  released_ = count;
  if (order_ != Order::kPriority) return;
  const auto later = [&](std::uint32_t a, std::uint32_t b) { return priority_[a] > priority_[b]; };
  while (next_released_ < by_release_.size() && is_released(by_release_[next_released_])) {
    waiting_.push_back(by_release_[next_released_++]);
    std::push_heap(waiting_.begin(), waiting_.end(), later);
  }
}

std::optional<NextStep> StepOrder::next() const {
  if (order_ == Order::kPriority) {
    if (waiting_.empty()) return std::nullopt;
    return NextStep{waiting_.front()};
  }
  if (all_started()) return std::nullopt;
  if (!sequence_.empty()) return next_of_sequence();
  const auto message = static_cast<std::uint32_t>(started_);
  if (!is_released(message)) return std::nullopt;
  return NextStep{message};
}

std::optional<NextStep> StepOrder::next_of_sequence() const {
  const Step& step = sequence_[started_];
  const bool may = step.stage == Stage::kReduce ? is_released(step.message) : reduced_[step.message];
  if (!may) return std::nullopt;
  return NextStep{step.message, step.stage, false};
}

void StepOrder::started() {
  ++started_;
  if (order_ != Order::kPriority) return;
  const auto later = [&](std::uint32_t a, std::uint32_t b) { return priority_[a] > priority_[b]; };
  std::pop_heap(waiting_.begin(), waiting_.end(), later);
  waiting_.pop_back();
}

}  // namespace commtune
