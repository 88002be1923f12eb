#pragma once
// The timeline simulator: one steady-state iteration of a plan, as a pure function. MODEL section 3.

#include <cstdint>
#include <memory>
#include <string>
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
  std::vector<double> tail;   ///< per layer: update and forward time from this layer to the last
  std::vector<std::uint64_t> layer_bytes;  ///< gradient bytes per layer
  std::vector<TensorRef> tensors;          ///< by TensorId
  double total_forward = 0, total_backward = 0, total_update = 0;
  std::uint64_t total_bytes = 0;

  std::size_t layers() const { return forward.size(); }
  double compute() const { return total_forward + total_backward + total_update; }
};

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

/// A plan in the flat arrays that the simulator walks. A search builds these directly and makes a Plan of the
/// best one only. Of the layers that a message carries only the lowest matters: its gradients appear last,
/// and the layers above it run after it anyway.
struct FlatPlan {
  FlatPlan() = default;
  FlatPlan(const Plan& plan, const Workload& work);

  std::vector<std::uint64_t> bytes;         ///< per message
  std::vector<std::uint32_t> lowest_layer;  ///< per message: the layer that is ready last and wanted first
  std::vector<std::uint8_t> fused;          ///< per message: more than one piece, so it has to be copied
  std::vector<std::uint32_t> rank;  ///< per message: 0 is the most urgent; a permutation; kPriority only
  std::vector<Step> sequence;       ///< as in Plan
  Release release = Release::kGradient;
  Order order = Order::kList;
  Barrier barrier = Barrier::kFull;
  std::uint64_t credit = 0;

  std::size_t messages() const { return bytes.size(); }
  void clear();
  void add_message(std::uint64_t message_bytes, std::uint32_t lowest,
                   bool is_fused);  ///< ranks are not filled in
};

/// Predicts one iteration in steady state, many times over: it owns the arrays that a run needs, so that a
/// run allocates nothing once they have grown. Not for two threads at once; any number of objects may exist.
///
/// The compute side runs the backward pass from the last layer to the first, then per layer update and
/// forward. A message is released when its last gradient exists (Release). The communication side starts
/// steps in the plan's order (kList) or the most urgent released message (kPriority), never before one that
/// is due earlier, as soon as the credit allows: bytes in flight and its own within the credit, or nothing in
/// flight (with parameter servers: until pushed). A step that starts at time t is served from s = max(t,
/// channel free), keeps its channel until s + occupancy and has ended everywhere at s + alone. Colocated
/// servers and all-to-all roads have one channel; with dedicated servers a message passes the reduce channel
/// and then, in the same order, the distribute channel. A fused message also pays for being copied in and
/// out, half a stage each. A layer's update and forward pass start after the layer before it and after what
/// the barrier asks for. Compute slows by kappa while a channel is occupied; straggling is added once.
class Simulator {
 public:
  explicit Simulator(const Workload& work);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// plan      must satisfy check(); not verified again here
  /// timeline  filled when not null
  /// cost      O(messages + pieces + layers), and no more than O(log) for each of a credit's messages in
  /// flight
  Prediction run(const FlatPlan& plan, const RoadCost& cost, Timeline* timeline = nullptr);
  Prediction run(const Plan& plan, const RoadCost& cost, Timeline* timeline = nullptr);

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
