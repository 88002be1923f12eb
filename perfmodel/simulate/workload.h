#pragma once
// A profile and a plan in the flat arrays that the simulator, the bounds and the searches walk.

#include <cstdint>
#include <vector>

#include "perfmodel/cost/topology.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune {

/// A profile in the arrays that the simulator and the bounds walk; made once per job.
///
/// Times are on the traffic's clock, which runs 1/(1 + contention) times as fast as a real one while compute
/// runs: traffic that is slowed by compute past a compute of its real length is traffic at full speed past a
/// compute that is that much shorter. What leaves the simulator and the bounds is real time again.
struct Workload {
  explicit Workload(const Profile& profile, const JobSlowdown& slowdown = {});

  double contention = 0;
  Seconds lateness{};                             ///< JobSlowdown::lateness; for bounds
  std::vector<double> forward, backward, update;  ///< seconds per layer, forward order
  std::vector<double> ready;  ///< per layer: when its gradients exist, from the start of the backward pass
  std::vector<double> tail;   ///< per layer: update and forward time from this layer to the last
  std::vector<std::uint64_t> layer_bytes;  ///< gradient bytes per layer
  std::vector<TensorRef> tensors;          ///< by TensorId
  double total_forward = 0, total_backward = 0, total_update = 0;
  std::uint64_t total_bytes = 0;

  std::size_t layers() const { return forward.size(); }
  double compute() const { return total_forward + total_backward + total_update; }
  /// Real time of an iteration that lasts so long on the traffic's clock, while compute ran for `computing`
  /// of it, and the other way round for one that computes no longer than it must.
  double real(double clock, double computing) const { return clock + contention * computing; }
  double clock(double real_time) const { return real_time - contention * compute(); }
};

/// What comes back as one, of a plan with pulls (Plan::pulls).
struct FlatPulls {
  std::vector<std::uint64_t> bytes;                    ///< per pull, on the wire
  std::vector<std::uint32_t> lowest_layer;             ///< per pull: the layer that is wanted first
  std::vector<std::uint8_t> copied;                    ///< per pull: not is_one_stretch()
  std::vector<std::uint32_t> messages;                 ///< per pull: how many messages carry its bytes
  std::vector<std::vector<std::uint32_t>> of_message;  ///< the pulls that have bytes of each message

  bool empty() const { return bytes.empty(); }
};

/// A plan in the flat arrays that the simulator walks. A search builds these directly and makes a Plan of the
/// best one only. Of the layers that a message carries only the lowest matters: its gradients appear last,
/// and the layers above it run after it anyway.
struct FlatPlan {
  FlatPlan() = default;
  FlatPlan(const Plan& plan, const Workload& work);

  std::vector<std::uint64_t> bytes;         ///< per message, on the wire
  std::vector<std::uint32_t> lowest_layer;  ///< per message: the layer that is ready last and wanted first
  std::vector<std::uint8_t> copied;         ///< per message: not is_one_stretch(), so it has to be copied
  std::vector<std::uint32_t> rank;    ///< per message: 0 is the most urgent; a permutation; kPriority only
  std::vector<Step> sequence;         ///< as in Plan
  std::vector<std::uint32_t> server;  ///< as in Plan
  Release release = Release::kGradient;
  Order order = Order::kList;
  /// Of kPriority and a coupled plan: whether a more urgent message overtakes on the channel what has started
  /// before it. Without, priority decides what starts next and nothing else: so go the messages of the plan
  /// whose list is that order (Simulator::started).
  bool overtakes = true;
  Barrier barrier = Barrier::kFull;
  std::uint64_t credit = 0;
  std::vector<std::uint64_t> window;  ///< as in Plan
  FlatPulls pulls;

  std::size_t messages() const { return bytes.size(); }
  std::uint64_t credit_of(std::size_t message) const { return window.empty() ? credit : window[message]; }
  void clear();
  void reserve(std::size_t messages);
  void add_message(std::uint64_t message_bytes, std::uint32_t lowest,
                   bool is_copied);  ///< ranks are not filled in
  /// Lower layers first, in list order within each. Of messages that are listed last layer first.
  void rank_by_layer();

 private:
  void rank_by(const std::vector<std::int32_t>& priority);
  void add_pulls(const Plan& plan, const Workload& work);
};

}  // namespace commtune
