#pragma once
// The lines of a piecewise linear cost, fitted together so that the cost never falls.

#include <cstddef>
#include <span>
#include <vector>

#include "perfmodel/fit/segmentation.h"

namespace commtune {

/// Lines with the points where they begin and the sizes from which they hold.
struct PieceFit {
  Segmentation begins;
  std::vector<double> from;  ///< bytes; the first is 0
  std::vector<Line> lines;

  std::size_t piece_of(std::size_t point) const;  ///< index into lines
  /// Two a piece, and where it begins.
  std::size_t parameters() const { return 3 * lines.size() - 1; }
};

/// What an error is measured in, by point: seconds. One unit is about what the sample's spread expects.
using Units = std::vector<double>;

/// The points' own units, for before there is a fit.
Units units_of(std::span<const FitPoint> points);

/// Shares of the fitted costs: unlike measured times these do not favour samples that came out too short.
Units units_by_cost(std::span<const FitPoint> points, const PieceFit& fit);

/// (time - cost) / unit, by point.
std::vector<double> residuals(std::span<const FitPoint> points, const PieceFit& fit, const Units& units);

/// Huber's fit of all pieces together with residuals of scale sigma, for given `begins` and `from`, with no
/// alpha, beta or jump below zero. Starts from fit.lines and replaces them.
///
/// converged  change of every residual, in units of its spread, with which reweighting ends
void refine(PieceFit& fit, std::span<const FitPoint> points, const Units& units, double sigma, double huber,
            double converged = 1e-9);

/// How many pieces, where they begin, and their lines: the best_segmentations() that Schwarz's criterion
/// prefers. sigma is the noise that the search assumes.
PieceFit choose_pieces(std::span<const FitPoint> points, double sigma, double huber, int max_pieces);

/// Refines with errors relative to the cost and their scale from the fit itself, in turn until both have
/// settled. Returns the scale.
double polish(PieceFit& fit, std::span<const FitPoint> points, double huber);

}  // namespace commtune
