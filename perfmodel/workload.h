#pragma once
// A profile and a plan in the flat arrays that the simulator, the bounds and the searches walk.

#include <cstdint>
#include <vector>

#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

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

}  // namespace commtune
