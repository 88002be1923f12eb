#pragma once
// Messages of unequal sizes in two phases: gradients in the order in which they appear while the backward
// pass runs, and the rest in forward order. US-Byte and iPart differ in the first phase.

#include <cstdint>
#include <vector>

#include "tuner/planning.h"
#include "tuner/search/fusion.h"

namespace commtune::tuner {

class BlockSplit {
 public:
  /// backward  groups of tensors in the order in which gradients appear, one after the other. Those that
  /// start
  ///           before the backward pass ends are sent; the one that is under way then is cut there.
  /// cost      of a message on its channel
  BlockSplit(const Planning& job, FusionCost cost, const Groups& backward);

  /// All messages. What the backward phase leaves goes in forward order, each as large as is back before the
  /// forward pass needs its first layer, but no smaller than that layer and than `least` bytes. A tensor in
  /// which a message ends is cut.
  std::vector<Message> messages(std::uint64_t least) const;

  /// Bytes of the first layer that the backward phase leaves; at least one element.
  std::uint64_t smallest() const;

 private:
  void send_backward(const Groups& groups);
  void take_from_back(std::size_t before, std::uint64_t bytes);
  Message forward_block(std::vector<std::uint64_t>& left, std::size_t tensor, std::uint64_t room) const;
  std::uint64_t rest_of(const std::vector<std::uint64_t>& left, std::size_t tensor) const;
  std::uint64_t bytes_until(double seconds) const;

  const Workload& work_;
  const std::uint64_t element_;
  const FusionCost cost_;
  std::vector<std::uint64_t> left_;   ///< by tensor: bytes that go after the backward pass, its last ones
  std::vector<std::uint64_t> begin_;  ///< by tensor: where they begin
  std::vector<Message> backward_;
  double now_ = 0;  ///< when the channel is free for the forward phase
};

/// Least sizes of forward messages that are tried: the first one's layer, doubled so many times less one.
inline constexpr int kLeastSizes = 8;

/// The plan with the least size of forward messages that simulates fastest: the first one's layer, or
/// doublings of it. A barrier per layer; messages go in list order.
Plan best_two_phase_plan(const Planning& job, const RoadOption& option, const BlockSplit& blocks,
                         Bytes credit);

}  // namespace commtune::tuner
