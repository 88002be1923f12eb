#pragma once
// The timeline simulator: one steady-state iteration of a plan, as a pure function. MODEL.md section 3.2.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "perfmodel/flat_cost.h"
#include "perfmodel/plan.h"
#include "perfmodel/stage_cost.h"
#include "perfmodel/workload.h"

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
  Seconds reduce_start{}, reduce_end{};
  Seconds distribute_start{},
      distribute_end{};  ///< for a coupled operation the split is by the stages' own costs
};

/// The predicted iteration in full. Times from the start of the backward pass; layers in forward order.
struct Timeline {
  std::vector<Seconds> backward_start, backward_end;
  std::vector<Seconds> forward_start, forward_end;  ///< the layer's update included, before its forward
  std::vector<MessageSpan> messages;
};

inline constexpr Seconds kNoLimit{std::numeric_limits<double>::infinity()};

/// Predicts one iteration in steady state, many times over: it owns the arrays that a run needs, so that a
/// run allocates nothing once they have grown. Not for two threads at once; any number of objects may exist.
///
/// The compute side runs the backward pass from the last layer to the first, then per layer update and
/// forward. A message is released when its last gradient exists (Release). The communication side starts
/// steps in the plan's order (kList) or the most urgent released message (kPriority), never before one that
/// is due earlier, as soon as the credit allows: those started before it have no more than the credit left to
/// send (with parameter servers: to push). Messages travel together, turn by turn (Traffic); dedicated
/// servers' pushes and answers have a channel each, all others share one, as all rounds of a collective do. A
/// message
/// that has to be copied (FlatPlan::copied) pays for that, half in either stage. A layer's update and forward
/// pass start after the layer before it and after what the barrier asks for. Compute slows by kappa while a
/// channel is occupied; straggling is added once.
class Simulator {
 public:
  explicit Simulator(const Workload& work);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// plan      must satisfy check(); not verified again here
  /// timeline  filled when not null
  /// cost      O(log messages) for each turn of a message, and O(pieces + layers)
  Prediction run(const FlatPlan& plan, const RoadCost& cost, Timeline* timeline = nullptr);
  Prediction run(const Plan& plan, const RoadCost& cost, Timeline* timeline = nullptr);

  /// T alone, for a search that tries thousands of plans on one road. A plan that turns out to take longer
  /// than `limit` is given up there: what is returned then is infinity.
  Seconds time(const FlatPlan& plan, const FlatRoad& road, Seconds limit = kNoLimit);

  /// Message stages simulated so far by this object: what a search's budget is counted in.
  std::uint64_t events() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

/// One prediction; Simulator's contract.
Prediction simulate(const Workload& work, const Plan& plan, const RoadCost& cost,
                    Timeline* timeline = nullptr);

}  // namespace commtune
