#pragma once
// How much the parameters of a fit are to be doubted.

#include <span>
#include <vector>

#include "perfmodel/fit/fit.h"
#include "perfmodel/fit/piecewise.h"

namespace commtune {

/// Relative spread that a sample has beyond its own interval; less than that is not worth a piece.
inline constexpr double kOwnSpread = 0.005;

/// Covariance of the parameters alpha_0, beta_0, alpha_1, ..., given where the pieces begin; row-major.
///
/// The bootstrap (residuals drawn anew) says what the samples' noise leaves open, which shrinks with their
/// number. Where the curve passes by its samples by more than their noise explains, the shape itself is
/// wrong, and more samples of the same kind would not mend that. So the covariance is enlarged until what it
/// says of the cost at a typical sample covers that misfit: draws from a poor fit scatter as widely as it
/// errs. Source: residual bootstrap, Efron (1979); enlarging by the misfit, Birge (1932), per prediction
/// instead of per parameter.
///
/// sigma  scale of the residuals, as polish() gives it
std::vector<double> covariance_of(std::span<const FitPoint> points, const PieceFit& fit,
                                  const FitOptions& options, double sigma);

}  // namespace commtune
