#pragma once
// Which neighbours to fuse when messages go one after the other in the order in which gradients appear and
// the forward pass waits for all of them: MODEL.md section 5. Neighbours lie side by side: fusing copies
// nothing.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perfmodel/fit/curve.h"

namespace commtune::tuner {

/// Tensors in the order in which their gradients appear.
struct FusionJob {
  std::vector<double> ready;         ///< seconds from the start of the backward pass; never falling
  std::vector<std::uint64_t> bytes;  ///< positive
};

/// What a group of tensors costs.
struct FusionCost {
  Curve occupancy;  ///< the channel is kept this long; for messages one at a time the same as alone
  Curve alone;      ///< the last message has ended this long after it was served
};

/// Sizes of the groups in order, together all tensors.
using Groups = std::vector<std::size_t>;

/// The groups that end earliest: E(k) = min_j max(E(j), r_k) + t(m_k + ... + m_{j-1}), for any non-decreasing
/// costs. Exact for messages one at a time, and for overlapping ones as long as the last to be served is the
/// last to end. O(n^2) at worst; a group never reaches back beyond the last one that ends before its
/// gradients exist, so O(n * tensors under way) otherwise.
Groups exact_fusion(const FusionJob& job, const FusionCost& cost);

/// MG-WFBP's published rule (Shi et al., INFOCOM 2019): with s the start and t = a + b m the time of the
/// group so far, the next tensor joins it if r < s + t and (r < s or r - s < a). O(n).
Groups mg_wfbp_fusion(const FusionJob& job, double a, double b);

/// Start-up and time per byte of the line through a cost at 32 KiB, 64 KiB, ..., 2016 KiB by least squares:
/// the sizes at which MG-WFBP's authors measure at run time.
struct LatencyLine {
  double a = 0, b = 0;
};
LatencyLine mg_wfbp_line(const Curve& cost);

}  // namespace commtune::tuner
