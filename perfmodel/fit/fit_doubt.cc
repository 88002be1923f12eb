#include "perfmodel/fit/fit_doubt.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "perfmodel/base/normal.h"
#include "perfmodel/base/random.h"

namespace commtune {

namespace {

// --- bootstrap ------------------------------------------------------------------------------------------

/// Of a refit; far less than some hundred draws leave open, and half the rounds of the fit's own.
constexpr double kDrawConverged = 1e-2;

/// Residuals to draw from, in units, with the spread that the samples' own intervals ask for at least.
struct NoisePool {
  std::vector<double> residuals;
  double extra = 0;  ///< standard deviation of a normal to be added

  double draw(Random& random) const {
    return residuals[random.below(residuals.size())] + extra * random.normal();
  }
};

NoisePool noise_pool(std::span<const FitPoint> points, const PieceFit& fit, const Units& units) {
  NoisePool pool{residuals(points, fit, units), 0};
  const auto n = static_cast<double>(points.size());
  const double freedom = std::max(n - static_cast<double>(fit.parameters()), 1.0);
  double seen = 0, known = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    pool.residuals[i] *= std::sqrt(n / freedom);
    seen += pool.residuals[i] * pool.residuals[i] / n;
    const double own = kOwnSpread / points[i].spread;
    known += (1 - own * own) / n;  // the share of a unit that its interval stands for, squared
  }
  pool.extra = std::sqrt(std::max(known - seen, 0.0));
  return pool;
}

Eigen::MatrixXd bootstrap_covariance(std::span<const FitPoint> points, const PieceFit& fit,
                                     const FitOptions& options, double sigma) {
  const Units units = units_by_cost(points, fit);
  const NoisePool pool = noise_pool(points, fit, units);
  const auto parameters = static_cast<Eigen::Index>(2 * fit.lines.size());
  Eigen::MatrixXd drawn(options.bootstrap, parameters);
  Random random(options.seed);
  std::vector<FitPoint> resampled(points.begin(), points.end());
  for (int draw = 0; draw < options.bootstrap; ++draw) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      resampled[i].time = fit.lines[fit.piece_of(i)](points[i].size) + units[i] * pool.draw(random);
    }
    PieceFit again = fit;
    refine(again, resampled, units, sigma, options.huber, kDrawConverged);
    for (std::size_t k = 0; k < again.lines.size(); ++k) {
      drawn.row(draw).segment(static_cast<Eigen::Index>(2 * k), 2) << again.lines[k].alpha,
          again.lines[k].beta;
    }
  }
  drawn.rowwise() -= drawn.colwise().mean().eval();
  return drawn.transpose() * drawn / std::max(options.bootstrap - 1, 1);
}

// --- misfit ---------------------------------------------------------------------------------------------

/// The part of the relative residuals that the samples' own spread does not explain, as a standard deviation:
/// of the typical sample, or of the worst tenth if that says more. Where no sample knows its spread, what
/// neighbours show counts as theirs.
double misfit(std::span<const FitPoint> points, const PieceFit& fit) {
  constexpr double kByChance = 1.5;  // quantiles of twenty normal values seldom pass theirs by more
  std::vector<double> relative, spreads;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double cost = fit.lines[fit.piece_of(i)](points[i].size);
    relative.push_back(std::abs(points[i].time - cost) / points[i].time);
    spreads.push_back(points[i].spread);
  }
  std::sort(relative.begin(), relative.end());
  std::sort(spreads.begin(), spreads.end());
  const auto at = [](const std::vector<double>& sorted, double q) {
    return sorted[static_cast<std::size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
  };
  const double noise = spreads.back() > kOwnSpread ? 1 : std::max(1.0, neighbour_noise(points));
  const auto n = static_cast<double>(points.size());
  const double freedom = std::max(n - static_cast<double>(fit.parameters()), 1.0);
  const auto beyond = [&](double q, double normal) {
    const double seen = at(relative, q) / normal * std::sqrt(n / freedom),
                 own = at(spreads, q) * noise * kByChance;
    return std::max(seen * seen - own * own, 0.0);
  };
  return std::sqrt(std::max(beyond(0.5, 1 / kSigmaByMedian), beyond(0.9, kNormal90)));
}

/// Relative standard deviation of the fitted cost at the typical sample.
double predicted_spread(std::span<const FitPoint> points, const PieceFit& fit,
                        const Eigen::MatrixXd& covariance) {
  std::vector<double> spreads;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t piece = fit.piece_of(i);
    const Eigen::Vector2d by{1, points[i].size};
    const auto from = static_cast<Eigen::Index>(2 * piece);
    const double variance = by.dot(covariance.block<2, 2>(from, from) * by);
    const double cost = fit.lines[piece](points[i].size);
    if (cost > 0) spreads.push_back(std::sqrt(std::max(variance, 0.0)) / cost);
  }
  if (spreads.empty()) return 0;
  const auto middle = spreads.begin() + static_cast<std::ptrdiff_t>(spreads.size() / 2);
  std::nth_element(spreads.begin(), middle, spreads.end());
  return *middle;
}

}  // namespace

std::vector<double> covariance_of(std::span<const FitPoint> points, const PieceFit& fit,
                                  const FitOptions& options, double sigma) {
  Eigen::MatrixXd covariance = bootstrap_covariance(points, fit, options, sigma);
  const double missed = misfit(points, fit), predicted = predicted_spread(points, fit, covariance);
  if (missed > predicted && predicted > 0) covariance *= (missed / predicted) * (missed / predicted);
  return {covariance.data(), covariance.data() + covariance.size()};
}

}  // namespace commtune
