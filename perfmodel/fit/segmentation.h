#pragma once
// Where the pieces of a piecewise linear cost begin, and the robust lines that decide it.

#include <cstddef>
#include <span>
#include <vector>

namespace commtune {

/// A sample in plain numbers.
struct FitPoint {
  double size = 0;    ///< bytes
  double time = 0;    ///< seconds, positive
  double spread = 1;  ///< standard deviation of the relative error that its maker expects of it
  double unit = 1;    ///< seconds: spread times what the cost here is about; see set_units()
};

/// Sets each point's unit from the median time of the point and its two neighbours (at the ends, what a cost
/// that never falls allows). A sample that is far too long or too short would otherwise measure its own error
/// with a wrong rod, and one that is far too short would outweigh all others.
///
/// points  sorted by size
void set_units(std::span<FitPoint> points);

/// time = alpha + beta * size, both not negative.
struct Line {
  double alpha = 0, beta = 0;
  double operator()(double size) const { return alpha + beta * size; }
};

/// (time - line), in the point's units.
double residual(const FitPoint& point, const Line& line);

/// Huber's weight of a residual u = residual / sigma: 1 up to c, then c / |u|. Source: Huber (1964).
double huber_weight(double u, double c);

/// -2 log likelihood, up to a constant, of a residual u = residual / sigma under Student's t with four
/// degrees of freedom: about u^2 for good samples, and almost flat for outliers, which so cannot buy a piece.
double outlier_proof_loss(double u);

/// Noise of the samples before any structure is known: the median distance of a sample from the line through
/// its two neighbours, as a standard deviation. Pieces and outliers touch only a few of those.
/// Source: Gasser, Sroka, Jennen-Steinmetz, Biometrika 73 (1986), with a median for the mean.
///
/// points   sorted by size
/// returns  the noise in units; 0 if there are fewer than three distinct sizes
double neighbour_noise(std::span<const FitPoint> points);

/// Huber's line through the points with residuals of scale sigma units, alpha and beta not negative.
Line robust_line(std::span<const FitPoint> points, double sigma, double huber);

/// The first point of each piece. The first entry is 0.
using Segmentation = std::vector<std::size_t>;

/// The best ways to cut the points into 1, 2, ... max_pieces pieces, in each of which at least three distinct
/// sizes speak for its line and against the lines beside it: for each number the best whose lines can follow
/// each other without the cost falling, and the best if that did not matter (a joint fit then enforces it),
/// where the two differ; none where there is none. Dynamic programming over all cuts.
///
/// points  sorted by size
/// cost    O(n^3) for n points; the cuts are thinned out above a hundred points
std::vector<Segmentation> best_segmentations(std::span<const FitPoint> points, double sigma, double huber,
                                             int max_pieces);

/// A size between two neighbouring points from which the later line may take over without the cost falling:
/// where the lines cross, or the geometric middle if the cost jumps up everywhere. If it would fall
/// everywhere, the end where it falls less.
double takeover(const Line& before, const Line& after, double last_before, double first_after);

}  // namespace commtune
