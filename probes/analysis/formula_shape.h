#pragma once
// What a formula knows of a cost between the sizes at which it was measured. Pure functions.

#include <optional>
#include <span>
#include <vector>

#include "perfmodel/fit/curve.h"
#include "perfmodel/fit/fit.h"

namespace commtune::probes {

/// Where the formula holds: the sizes whose parts lie in the links' measured range.
struct FormulaShape {
  Curve curve;
  Bytes smallest, largest;
  /// What the largest measured size takes longer than the formula goes on beyond it as a time (0), as a part
  /// of the formula (1), or between: it grows with this power of the formula's cost. 0 to 1.
  double excess_grows = 1;
  /// Of a stream, what messages alone take: bytes beyond the largest streamed size add no more to a message
  /// in a stream than to one that waits for all of them. Empty: no limit.
  Curve alone = {};
};

/// Of messages that follow each other, the next is handed over while the last one's bytes leave, so that each
/// takes the longer of the two (gap g and gap per byte G of LogGP, Alexandrov et al., SPAA 1995). But headers
/// are bytes as well, and one processor may do both: a part of handing over then comes on top of the bytes.
///
/// by_size             at least one sample, by size; the smallest shows what handing over takes
/// bytes               what bytes take, positive at every measured size
/// on_top_unless_told  the part of handing over, 0 to 1, where the samples do not tell
/// returns             the shape, of several such parts, that departs from the samples most evenly
Curve stream_shape(std::span<const Sample> by_size, const Curve& bytes, double on_top_unless_told);

/// Fits an operation that was measured at few sizes, with the shape of a formula between and beyond them.
///
/// A link is measured at many sizes, an operation at a handful, sixteen times apart: too few to show where
/// its cost bends. What an operation takes beyond the formula changes slowly with the size, so samples are
/// borrowed where a gap is wide: the formula times the ratio of measured to formula, which is interpolated
/// between the measured neighbours in the logarithm of the size and kept beyond the last ones, above the
/// largest as excess_grows says. What the formula lacks of the start-up is added to it first. The more the
/// ratio differs between two neighbours the less the shape is right, and the less its samples weigh; those of
/// one gap together weigh no more than one sample. They serve the curve alone: range and quality are those of
/// what was measured.
///
/// samples  at least two distinct sizes, positive times; errors as in fit_curve()
Fit fit_with_shape(std::span<const Sample> samples, const FormulaShape& shape, const FitOptions& options);

/// Fits samples together with borrowed ones; range and quality are those of the samples.
Fit fit_with_borrowed(std::span<const Sample> samples, std::span<const Sample> borrowed,
                      const FitOptions& options);

/// What a message takes that is larger than all samples; nullopt where the shape costs nothing at one of
/// them.
std::optional<Seconds> beyond_largest(std::span<const Sample> samples, const FormulaShape& shape, Bytes size);

/// The borrowed samples alone; none where the shape costs nothing at a measured size.
std::vector<Sample> borrowed_samples(std::span<const Sample> samples, const FormulaShape& shape);

}  // namespace commtune::probes
