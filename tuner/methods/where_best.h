#pragma once
// Where each method is the best of the literature, by a sweep over networks, models and numbers of workers.
// `tests/bench/methods --rows` makes the table again; tests/bench/README.md says on what clusters.

#include <span>
#include <string_view>

#include "perfmodel/base/units.h"

namespace commtune::tuner {

/// One job of the sweep.
struct MethodCell {
  std::string_view model;  ///< a shipped profile
  int workers = 0;
  Seconds latency{};            ///< of an empty message between two hosts
  double bytes_per_second = 0;  ///< of a long one
  std::string_view method;      ///< the fastest of the literature
  double ahead = 0;             ///< by which part the next one takes longer; 0: as fast
  double joint_win = 1;         ///< its time over that of the joint plan
  double gap = 0;               ///< the joint plan's time over the bound - 1
};

/// In the order of the sweep: model, workers, latency, bandwidth.
std::span<const MethodCell> where_best();

}  // namespace commtune::tuner
