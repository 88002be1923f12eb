#pragma once
// From samples to cost curves: MODEL section 6.

#include <cstdint>
#include <span>

#include "perfmodel/curve.h"
#include "perfmodel/units.h"

namespace commtune {

/// One measured size: the median time over its repetitions, with the half width of its 95 % confidence
/// interval.
struct Sample {
  Bytes size;
  Seconds time{};
  Seconds half_width{};  ///< 0 when unknown
  int repetitions = 1;
};

struct FitOptions {
  int max_pieces = 3;    ///< BIC chooses 1..max_pieces
  double huber = 1.345;  ///< in standard deviations of the relative residuals
  int bootstrap = 200;   ///< resamples for the covariance; 0: none
  std::uint64_t seed = 1;
  void check() const;  ///< throws Error{kBadInput} naming field, value and rule
};

/// Piecewise linear fit with relative weights, Huber loss and alpha, beta >= 0; the result never decreases.
///
/// samples  in any order, positive times, at least two distinct sizes
/// throws   Error{kBadInput} if fewer than two distinct sizes or a time is not positive
/// cost     milliseconds for 50 samples and 200 resamples; deterministic for a given seed; callable from any
/// thread Source: MODEL section 6; Huber (1964); Schwarz's BIC (1978); residual bootstrap, Efron (1979).
Fit fit_curve(std::span<const Sample> samples, const FitOptions& options = {});

/// Mean of a set of values, trimmed to its median, with a distribution-free 95 % interval from order
/// statistics.
struct MedianInterval {
  double median = 0, low = 0, high = 0;
  double relative_half_width() const { return median > 0 ? (high - low) / (2 * median) : 0; }
};
/// values  at least one, any order (sorted in place). With fewer than 6 values the interval is their range.
MedianInterval median_interval(std::span<double> values);

}  // namespace commtune
