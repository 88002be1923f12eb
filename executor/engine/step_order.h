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
  std::uint32_t message = 0;  ///< or pull (Step::message)
  Stage stage = Stage::kReduce;
  bool both = true;  ///< coupled: both stages as one operation
};

class StepOrder {
 public:
  explicit StepOrder(const Plan& plan);

  /// A new iteration: nothing is released, nothing has started.
  void begin();
  /// All gradients that the message carries exist. Once an iteration for each, in any order.
  void release(std::uint32_t message);
  /// A decoupled message's reduce stage has ended on this rank, or a message of a plan with pulls was pushed.
  void reduced(std::uint32_t message) { reduced_[message] = true; }

  /// The step that is to be started next, if it may (but for the credit).
  std::optional<NextStep> next() const;
  /// It was started.
  void started();
  bool all_started() const { return started_ == steps_; }

 private:
  std::optional<NextStep> next_of_sequence() const;
  bool may_distribute(std::uint32_t number) const;

  const std::vector<Step> sequence_;
  const Order order_;
  const std::vector<std::int32_t> priority_;
  const std::size_t steps_;
  std::vector<bool> released_, reduced_;               // by message
  std::vector<std::vector<std::uint32_t>> pulled_of_;  // by pull: the messages that carry its bytes
  std::vector<std::uint32_t> waiting_;                 // released ones: a heap, the smallest priority on top
  std::size_t started_ = 0;                            // steps
};

}  // namespace commtune
