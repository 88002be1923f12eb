#pragma once
// What the joint search moves about: a job's gradients in parts that are small enough to be worth placing one
// by one, and not smaller.

#include <cstdint>
#include <vector>

#include "perfmodel/plan.h"
#include "tuner/planning.h"

namespace commtune::tuner {

/// Neighbouring tensors, or part of one large tensor.
struct SearchUnit {
  double ready = 0;  ///< when the last of its gradients exists
  double tail = 0;  ///< update and forward time that cannot start before its first layer's gradients are back
  std::uint64_t bytes = 0;
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> layers;  ///< of the pieces, one for one
};

struct SearchUnitOptions {
  double share = 1.0 / 64;       ///< no unit of several tensors is larger than this part of the model
  double time_share = 1.0 / 64;  ///< nor spans more than this part of the compute time
  double cut_share = 1.0 / 32;   ///< a larger tensor is cut into equal parts no larger than this
  std::uint64_t smallest_cut = 64 << 10;  ///< unless they would be smaller than this
};

/// In the order in which gradients appear. Every byte of every tensor once.
std::vector<SearchUnit> units_of(const Planning& job, const SearchUnitOptions& options = {});

}  // namespace commtune::tuner
