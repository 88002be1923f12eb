#pragma once
// Cost of a message as a function of its size, and the fit that such a cost came from.

#include <optional>
#include <string>
#include <vector>

#include "perfmodel/base/units.h"

namespace commtune {

/// One piece of a piecewise linear cost: t(m) = alpha + beta * m for m >= from, until the next piece.
struct CurvePiece {
  Bytes from;
  Seconds alpha{};
  SecondsPerByte beta;
};

/// t(m), piecewise linear (protocol switches), non-decreasing and non-negative. The default curve costs
/// nothing. A single piece is Hockney's alpha-beta model (Parallel Computing 20(3), 1994).
class Curve {
 public:
  Curve() = default;
  Curve(Seconds alpha, SecondsPerByte beta) : pieces_{{Bytes{0}, alpha, beta}} {}
  /// pieces sorted by `from`, the first from 0. Throws Error{kBadInput} otherwise, or for a negative alpha or
  /// beta, or where the cost would fall at a piece's start (by more than a 10^-9 part, which is rounding).
  explicit Curve(std::vector<CurvePiece> pieces);

  Seconds operator()(Bytes m) const;
  const std::vector<CurvePiece>& pieces() const { return pieces_; }
  bool empty() const { return pieces_.empty(); }

  /// What a bound may use: t(m) >= least_alpha() + least_beta() * m for every m, the steepest such line from
  /// the start-up of the first piece (a cost never falls, so no message has a smaller one).
  SecondsPerByte least_beta() const;
  Seconds least_alpha() const;

 private:
  std::vector<CurvePiece> pieces_;
};

/// How well a fit explains its samples.
struct FitQuality {
  int samples = 0;             ///< medians that the fit was made from, one per (size, setting)
  double r_squared = 0;        ///< of the weighted residuals, 1 is perfect
  double median_relative = 0;  ///< median |residual| / measured
  double p90_relative = 0;     ///< 90th percentile of the same
};

/// Relative standard deviations of factors on all start-ups and on all times per byte of a cost. Such an
/// error comes again with every message, and so averages out over none. 0: not known.
struct Deviation {
  double startup = 0, rate = 0;
  /// A plan that was run has told what both cost together: where one is more, the other is less.
  bool opposed = false;
  bool any() const { return startup > 0 || rate > 0; }
  double largest() const { return startup > rate ? startup : rate; }
  bool operator==(const Deviation&) const = default;
};

/// A curve with where it came from. Parameters in order: alpha_0, beta_0, alpha_1, beta_1, ...
struct Fit {
  Curve curve;
  FitQuality quality;
  Bytes smallest, largest;  ///< measured range; a prediction outside is marked as such
  /// Row-major (2p x 2p), seconds and seconds per byte; empty when not estimated.
  std::vector<double> covariance;
  Deviation deviation;  ///< what its samples leave open between and beyond their sizes
  bool covers(Bytes m) const { return smallest <= m && m <= largest; }
};

}  // namespace commtune
