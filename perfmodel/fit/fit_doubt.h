#pragma once
// The covariance of a fit's parameters.

#include <span>
#include <vector>

#include "perfmodel/fit/fit.h"
#include "perfmodel/fit/piecewise.h"

namespace commtune {

/// Relative spread that a sample has beyond its own interval; less than that is not worth a piece.
inline constexpr double kOwnSpread = 0.005;

/// Covariance of the parameters alpha_0, beta_0, alpha_1, ..., given where the pieces begin; row-major.
///
/// The bootstrap (refitting with residuals drawn anew) estimates the error that the samples' noise causes,
/// which shrinks with their number. If the curve misses its samples by more than their noise explains, its
/// shape is wrong, and more samples would not mend that. The covariance is then enlarged until the standard
/// deviation of the cost at a typical sample is as large as the misfit, so that curves drawn from a poor fit
/// scatter as widely as the fit errs. Source: residual bootstrap, Efron (1979); enlarging by the misfit,
/// Birge (1932), per prediction instead of per parameter.
///
/// sigma  scale of the residuals, as polish() gives it
std::vector<double> covariance_of(std::span<const FitPoint> points, const PieceFit& fit,
                                  const FitOptions& options, double sigma);

}  // namespace commtune
