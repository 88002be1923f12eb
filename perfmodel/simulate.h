#pragma once
// The timeline simulator: one steady-state iteration of a plan, as a pure function. MODEL section 3.

#include <cstdint>
#include <vector>

#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "perfmodel/stage_cost.h"

namespace commtune {

/// A profile in the arrays that the simulator and the bounds walk; made once per profile.
struct Workload {
  explicit Workload(const Profile& profile);

  std::vector<double> forward, backward, update;  ///< seconds per layer, forward order
  std::vector<double> ready;  ///< per layer: when its gradients exist, from the start of the backward pass
  std::vector<double> tail;   ///< per layer: forward time from this layer to the last
  std::vector<TensorRef> tensors;  ///< by TensorId
  double total_forward = 0, total_backward = 0, total_update = 0;
  std::uint64_t total_bytes = 0;
};

/// What limits an iteration.
enum class Binding { kCompute, kLatency, kBandwidth, kServer };

struct Prediction {
  Seconds iteration{};      ///< T
  Seconds compute{};        ///< forward + backward + update: T on one worker
  Seconds exposed{};        ///< T - compute
  Seconds communication{};  ///< time that the busier channel is occupied
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
  std::vector<Seconds> forward_start, forward_end;
  std::vector<MessageSpan> messages;
};

/// Predicts one iteration in steady state.
///
/// Model: the compute side runs the backward pass from the last layer to the first, then per layer update and
/// forward. A message is released when its last gradient exists (Release). The communication side starts
/// steps in the plan's order (kList) or the released one with the smallest priority (kPriority), while the
/// credit allows; each occupies its channel and ends as StageCost says. The forward pass of a layer starts
/// after the layer before it and after what the barrier asks for. Compute slows by kappa while a channel is
/// busy; straggling is added once. plan      must satisfy check(); not verified again here timeline  filled
/// when not null cost      O(messages log messages + layers), no other state; callable from any thread
Prediction simulate(const Workload& work, const Plan& plan, const RoadCost& cost,
                    Timeline* timeline = nullptr);

}  // namespace commtune
