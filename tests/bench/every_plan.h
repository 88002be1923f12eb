#pragma once
// The best of every plan of a small job, by trying them all.

#include "tuner/planning.h"

namespace commtune::bench {

struct BestPlan {
  double seconds = 0;
  Plan plan;
};

/// Every way to cut the gradients' stream at the ends of tensors and in their middles into messages of
/// neighbours, in every order, one at a time and without a limit; on roads whose stages may run apart also
/// every sequence of up to three messages' stages. A barrier per layer. At most `kMostUnits` halves of
/// tensors.
BestPlan best_of_every_plan(const tuner::Planning& job, const tuner::RoadOption& option);

inline constexpr std::size_t kMostUnits = 6;

}  // namespace commtune::bench
