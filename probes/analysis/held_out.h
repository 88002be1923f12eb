#pragma once
// The error of fits and formulas, estimated by cross-validation: a measurement is left out and predicted from
// the rest. Pure.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>

#include "perfmodel/cluster.h"
#include "perfmodel/fit/fit.h"
#include "probes/analysis/enough_sizes.h"

namespace commtune::probes {

/// A size is used to judge the start-up (or the time per byte) if that makes up more than this part of its
/// cost.
inline constexpr double kMostly = 0.5;

/// Of what a message costs, its start-up's part: 0 to 1. The rest is what its bytes take as the largest
/// messages' do; where small ones are dear they are so by their parts and not by a byte.
double startup_share(const Curve& curve, Bytes size);

/// The largest error that is told from a larger one: a factor of ten says that nothing is known, and a
/// prediction of next to nothing would make any error of it infinite.
inline constexpr double kLargestError = 2.302585092994046;  // ln 10

/// Sum of squared errors, each the logarithm of measured over predicted, of at most kLargestError, and their
/// number.
struct SquaredErrors {
  double sum = 0;
  int count = 0;

  void add(double logarithm) {
    const double error = std::min(std::abs(logarithm), kLargestError);
    sum += error * error;
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

/// Root of the mean of a fit's own squared errors, shrunk towards the mean of all fits' (Smyth 2004): of one
/// that has few, chance alone would be most.
double shrunk(const SquaredErrors& own, const SquaredErrors& common);

/// The curve of samples, at least two sizes.
using CurveOf = std::function<Curve(std::span<const Sample>)>;

/// The error of a curve between its measured sizes. Each size but the first and the last is predicted by a
/// curve of all others, and the part of the difference that the sample's own interval explains is subtracted.
/// Leaving one out doubles the gap between sizes, and the error of interpolating a cost that bends evenly
/// grows with the square of the gap, so a quarter of the difference counts.
///
/// by_size  sorted by size, positive times; no errors come of fewer than three sizes
SquaredErrors between_sizes(std::span<const Sample> by_size, const CurveOf& curve_of);

/// Errors of start-ups and of times per byte.
struct CostErrors {
  SquaredErrors startup, rate;
};

/// The error of formulas for roads that were not measured. Each measured road is priced as if its own fits
/// were unknown, and compared with them: at the smallest size for the start-up and at the largest for the
/// time per byte, if these make up most of the cost there. Fits of fewer than three samples are left out.
CostErrors roads_held_out(const Cluster& cluster);

}  // namespace commtune::probes
