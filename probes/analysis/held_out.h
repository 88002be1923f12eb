#pragma once
// What fits leave open, by leaving out what was measured and asking the rest for it. Pure.

#include <cstddef>
#include <functional>
#include <span>

#include "perfmodel/cluster.h"
#include "perfmodel/fit/fit.h"
#include "probes/analysis/enough_sizes.h"

namespace commtune::probes {

/// A size shows what makes up as much of its cost.
inline constexpr double kMostly = 0.5;

/// Of what a message costs, its start-up's part: 0 to 1.
double startup_share(const Curve& curve, Bytes size);

/// Squares of logarithms of measured over said, with how many there are.
struct SquaredErrors {
  double sum = 0;
  int count = 0;

  void add(double logarithm) {
    sum += logarithm * logarithm;
    ++count;
  }
  void add(const SquaredErrors& other) {
    sum += other.sum;
    count += other.count;
  }
  double mean() const { return count > 0 ? sum / count : 0; }
  /// Root of their mean; 0 of none.
  double deviation() const;
};

/// The curve of samples, at least two sizes.
using CurveOf = std::function<Curve(std::span<const Sample>)>;

/// What a curve leaves open between its sizes: each of them but the first and the last is asked of a curve of
/// all others, and what the sample's own interval explains is taken off. Leaving one out doubles the gap, and
/// the error of interpolating a cost that bends evenly grows with the gap's square, so a quarter of what is
/// seen counts.
///
/// by_size  by size, positive times; fewer than three sizes say nothing
SquaredErrors between_sizes(std::span<const Sample> by_size, const CurveOf& curve_of);

/// Of start-ups and of times per byte.
struct CostErrors {
  SquaredErrors startup, rate;
};

/// What formulas say of roads that were not measured: each measured road is priced without its own fits, and
/// compared with them at the smallest size for the start-up and at the largest for the time per byte, where
/// these make up most of the cost. Fits of fewer than three samples are not asked.
CostErrors roads_held_out(const Cluster& cluster);

}  // namespace commtune::probes
