#pragma once
// In which order an engine starts a plan's steps: the plan's list, its sequence, or its priorities. One
// thread; knows nothing of networks and clocks.

#include <cstdint>
#include <optional>
#include <vector>

#include "perfmodel/plan.h"

namespace commtune {

/// What may be started next.
struct NextStep {
  std::uint32_t message = 0;
  Stage stage = Stage::kReduce;
  bool both = true;  ///< coupled: both stages as one operation
};

class StepOrder {
 public:
  /// release_layer  by message: the layer whose gradient, as the last one, lets it go
  StepOrder(const Plan& plan, std::vector<std::size_t> release_layer, std::size_t layers);

  /// A new iteration: nothing is released, nothing has started.
  void begin();
  /// The last `count` layers have their gradients.
  void release(std::size_t count);
  /// A decoupled message's reduce stage has ended on this rank.
  void reduced(std::uint32_t message) { reduced_[message] = true; }

  /// The step that is to be started next, if it may (but for the credit).
  std::optional<NextStep> next() const;
  /// It was started.
  void started();
  bool all_started() const { return started_ == steps_; }

 private:
  std::optional<NextStep> next_of_sequence() const;
  bool is_released(std::uint32_t message) const { return release_layer_[message] >= layers_ - released_; }

  const std::vector<Step> sequence_;
  const Order order_;
  const std::vector<std::int32_t> priority_;
  const std::vector<std::size_t> release_layer_;
  const std::size_t layers_;
  const std::size_t steps_;
  std::vector<std::uint32_t> by_release_;  // messages, those of the last layers first
  std::vector<std::uint32_t> waiting_;     // released ones: a heap, the smallest priority on top
  std::vector<bool> reduced_;
  std::size_t released_ = 0;       // layers
  std::size_t next_released_ = 0;  // into by_release_
  std::size_t started_ = 0;        // steps
};

}  // namespace commtune
