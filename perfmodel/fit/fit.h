#pragma once
// From samples to cost curves: MODEL.md section 6.

#include <cstdint>
#include <span>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/fit/curve.h"

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
/// throws   Error{kBadInput} if fewer than two distinct sizes, or a time is not positive and finite
/// cost     tens of milliseconds for 50 samples and 200 resamples; deterministic for a given seed; callable
///          from any thread
///
/// A piece has at least three distinct sizes. Where one begins, the cost may jump up or bend, never fall. The
/// residuals that the Huber loss sees are relative to the fitted cost, and a sample whose interval is wide
/// weighs less. The covariance is that of the parameters given where the pieces begin.
/// Source: MODEL.md section 6; Huber (1964); Schwarz's BIC (1978); residual bootstrap, Efron (1979).
Fit fit_curve(std::span<const Sample> samples, const FitOptions& options = {});

/// Curves that the samples would support as well: the fit's parameters drawn from a normal distribution with
/// its covariance, those below zero set to zero, and a piece that would start lower than the one before it
/// ends lifted to that. Without a covariance every curve is the fit's own.
///
/// returns  `count` curves, the same for the same seed; the pieces begin where the fit's do
std::vector<Curve> draw_curves(const Fit& fit, int count, std::uint64_t seed);

/// Median of a set of values, with a distribution-free 95 % interval from order statistics.
struct MedianInterval {
  double median = 0, low = 0, high = 0;
  double relative_half_width() const { return median > 0 ? (high - low) / (2 * median) : 0; }
};
/// values  any order (sorted in place). With fewer than 6 values the interval is their range.
/// throws  Error{kBadInput} if there are no values
MedianInterval median_interval(std::span<double> values);

}  // namespace commtune
