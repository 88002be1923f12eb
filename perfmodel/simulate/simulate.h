#pragma once
// The timeline simulator: one steady-state iteration of a plan, as a pure function. MODEL.md section 3.2.

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "perfmodel/cost/flat_cost.h"
#include "perfmodel/cost/road_cost.h"
#include "perfmodel/plan.h"
#include "perfmodel/simulate/workload.h"

namespace commtune {

/// What limits an iteration.
enum class Binding { kCompute, kLatency, kBandwidth, kServer };
std::string to_string(Binding binding);  ///< "compute", "latency", "bandwidth", "server"

struct Prediction {
  Seconds iteration{};      ///< T
  Seconds compute{};        ///< forward + backward + update: T on one worker
  Seconds exposed{};        ///< T - compute
  Seconds communication{};  ///< time during which at least one message is under way
  Seconds hidden() const { return communication > exposed ? communication - exposed : Seconds{0}; }
  Binding binding = Binding::kCompute;
  Basis basis = Basis::kMeasured;
  bool extrapolated = false;  ///< some message is outside the measured range
};

struct MessageSpan {
  Seconds released{};  ///< its last gradient exists (and its Release allows it)
  // Where both stages run as one operation, the split between them is by the stages' own costs.
  Seconds reduce_start{}, reduce_end{};
  Seconds distribute_start{}, distribute_end{};
};

/// The predicted iteration in full. Times from the start of the backward pass; layers in forward order.
struct Timeline {
  std::vector<Seconds> backward_start, backward_end;
  std::vector<Seconds> forward_start, forward_end;  ///< the layer's update included, before its forward
  std::vector<MessageSpan> messages;
  /// Of a plan with pulls: released when all its bytes are summed, and then back. Its messages end when they
  /// are summed.
  std::vector<MessageSpan> pulls;
};

inline constexpr Seconds kNoLimit{std::numeric_limits<double>::infinity()};

/// Predicts one iteration in steady state, many times over: it owns the arrays that a run needs, so that a
/// run allocates nothing once they have grown. Not for two threads at once; any number of objects may exist.
///
/// Compute. The backward pass runs from the last layer to the first; then each layer is updated and runs
/// forward, from the first to the last. A layer's update starts when the layer before it has run forward and
/// the messages that the barrier names are back. Compute runs at 1/(1 + kappa) of its speed while a channel
/// is occupied.
///
/// Communication. A message is released when its last gradient exists (or as Release says). Steps start in
/// the plan's order (kList), or the most urgent released message starts first (kPriority); no step starts
/// before one that precedes it in that order. A step starts as soon as the messages started before it have at
/// most the credit, or the message's window, left to send (through servers: to push). A pull of its own
/// starts when all that it brings back is summed, and asks for no credit. Messages under way share the
/// channels (NetworkModel): dedicated servers have one channel for pushes and one for answers, all other
/// roads one for everything. A message that is not one stretch of memory (FlatPlan::copied) takes longer by
/// the time of copying it, half of that in each stage.
///
/// The expected lateness of the slowest worker (RoadCost::straggling) is added to the iteration once.
class Simulator {
 public:
  explicit Simulator(const Workload& work);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// plan      must satisfy check(); not verified again here
  /// cost      of its road; plan_cost() of cost/plan_cost.h where it casts
  /// timeline  filled when not null
  /// cost      O(log messages) for each round of a message, and O(pieces + layers)
  Prediction run(const FlatPlan& plan, const RoadCost& cost, Timeline* timeline = nullptr);
  Prediction run(const Plan& plan, const RoadCost& cost, Timeline* timeline = nullptr);
  Prediction run(const FlatPlan& plan, const FlatRoad& road, Timeline* timeline = nullptr);

  /// T alone, for a search that tries thousands of plans on one road. Stops as soon as the plan is known to
  /// take longer than `limit`, and returns infinity then.
  Seconds time(const FlatPlan& plan, const FlatRoad& road, Seconds limit = kNoLimit);

  /// The messages of the last run in the order in which they started, under a plan without overtaking
  /// (FlatPlan::overtakes) that was simulated to its end. Valid until the next run.
  std::span<const std::uint32_t> started() const;

  /// Number of message stages that this object has simulated: the unit of a search's budget.
  std::uint64_t events() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

/// One prediction; Simulator's contract.
Prediction simulate(const Workload& work, const Plan& plan, const RoadCost& cost,
                    Timeline* timeline = nullptr);

}  // namespace commtune
