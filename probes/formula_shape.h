#pragma once
// What a formula knows of a cost between the sizes at which it was measured. Pure functions.

#include <span>
#include <vector>

#include "perfmodel/curve.h"
#include "perfmodel/fit.h"

namespace commtune::probes {

/// Where the formula holds: the sizes whose parts lie in the links' measured range.
struct Shape {
  Curve curve;
  Bytes smallest, largest;
};

/// Fits an operation that was measured at few sizes, with the shape of a formula between and beyond them.
///
/// A link is measured at many sizes, an operation at a handful, sixteen times apart: too few to show where
/// its cost bends. What an operation takes beyond the formula changes slowly with the size, so samples are
/// borrowed where a gap is wide: the formula times the ratio of measured to formula, which is interpolated
/// between the measured neighbours in the logarithm of the size and kept beyond the last ones. What the
/// formula lacks of the start-up is added to it first. The more the ratio differs between two
/// neighbours the less the shape is right, and the less its samples weigh; those of one gap together weigh no
/// more than one sample. They serve the curve alone: range and quality are those of what was measured.
///
/// samples  at least two distinct sizes, positive times; errors as in fit_curve()
Fit fit_with_shape(std::span<const Sample> samples, const Shape& shape, const FitOptions& options);

/// Fits samples together with borrowed ones; range and quality are those of the samples.
Fit fit_with_borrowed(std::span<const Sample> samples, std::span<const Sample> borrowed,
                      const FitOptions& options);

/// The borrowed samples alone; none where the shape costs nothing at a measured size.
std::vector<Sample> borrowed_samples(std::span<const Sample> samples, const Shape& shape);

}  // namespace commtune::probes
