#pragma once
// How well a curve meets what was measured. For fits; pure.

#include <span>

#include "perfmodel/fit/curve.h"

namespace commtune {

/// R squared and relative residuals of a curve.
///
/// measured, predicted  times at the same sizes, at least one
/// units                what a residual of each is measured in: its weight is 1 / unit^2
FitQuality fit_quality(std::span<const double> measured, std::span<const double> predicted,
                       std::span<const double> units);

}  // namespace commtune
