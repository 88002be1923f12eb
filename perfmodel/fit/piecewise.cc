#include "perfmodel/fit/piecewise.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "perfmodel/base/normal.h"
#include "perfmodel/fit/least_squares.h"

namespace commtune {

namespace {

constexpr double kLeastSigma = 1e-4;  // of exact samples

/// Rows that must not be negative: every alpha, every beta, and the jump where each piece begins.
Eigen::MatrixXd constraints(const std::vector<double>& from) {
  const auto pieces = static_cast<Eigen::Index>(from.size());
  Eigen::MatrixXd g = Eigen::MatrixXd::Zero(3 * pieces - 1, 2 * pieces);
  g.topRows(2 * pieces).setIdentity();
  for (Eigen::Index k = 1; k < pieces; ++k) {
    const double size = from[static_cast<std::size_t>(k)];
    g.row(2 * pieces + k - 1).segment(2 * k - 2, 4) << -1, -size, 1, size;
  }
  return g;
}

/// Lines for a segmentation: each piece alone for where it takes over, then all together.
PieceFit fit_segmentation(std::span<const FitPoint> points, const Segmentation& begins, double sigma,
                          double huber) {
  PieceFit fit{begins, {0}, {}};
  for (std::size_t k = 0; k < begins.size(); ++k) {
    const std::size_t end = k + 1 < begins.size() ? begins[k + 1] : points.size();
    fit.lines.push_back(robust_line(points.subspan(begins[k], end - begins[k]), sigma, huber));
    if (k > 0) {
      fit.from.push_back(
          takeover(fit.lines[k - 1], fit.lines[k], points[begins[k] - 1].size, points[begins[k]].size));
    }
  }
  refine(fit, points, units_of(points), sigma, huber);
  return fit;
}

/// Schwarz's criterion: what the samples lose under the fit, plus what its parameters cost.
double criterion(std::span<const FitPoint> points, const PieceFit& fit, double sigma) {
  double loss = 0;
  for (const double residual : residuals(points, fit, units_of(points))) {
    loss += outlier_proof_loss(residual / sigma);
  }
  return loss + static_cast<double>(fit.parameters()) * std::log(static_cast<double>(points.size()));
}

/// Standard deviation of the residuals by their median, enlarged for the parameters that were fitted.
double residual_scale(const std::vector<double>& residuals, std::size_t parameters) {
  std::vector<double> absolute(residuals.size());
  std::transform(residuals.begin(), residuals.end(), absolute.begin(), [](double r) { return std::abs(r); });
  const std::size_t middle = absolute.size() / 2;
  std::nth_element(absolute.begin(), absolute.begin() + static_cast<std::ptrdiff_t>(middle), absolute.end());
  const auto n = static_cast<double>(residuals.size());
  const double freedom = std::max(n - static_cast<double>(parameters), 1.0);
  return std::max(kSigmaByMedian * absolute[middle] * std::sqrt(n / freedom), kLeastSigma);
}

}  // namespace

std::size_t PieceFit::piece_of(std::size_t point) const {
  std::size_t piece = 0;
  while (piece + 1 < begins.size() && begins[piece + 1] <= point) {
    ++piece;
  }
  return piece;
}

Units units_of(std::span<const FitPoint> points) {
  Units units;
  for (const FitPoint& point : points) {
    units.push_back(point.unit);
  }
  return units;
}

Units units_by_cost(std::span<const FitPoint> points, const PieceFit& fit) {
  constexpr double kLeastShare = 1e-3;  // of the measured time, where a robust line passes far below
  Units units;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double cost = fit.lines[fit.piece_of(i)](points[i].size);
    units.push_back(std::max(cost, kLeastShare * points[i].time) * points[i].spread);
  }
  return units;
}

std::vector<double> residuals(std::span<const FitPoint> points, const PieceFit& fit, const Units& units) {
  std::vector<double> result(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    result[i] = (points[i].time - fit.lines[fit.piece_of(i)](points[i].size)) / units[i];
  }
  return result;
}

void refine(PieceFit& fit, std::span<const FitPoint> points, const Units& units, double sigma, double huber,
            double converged) {
  constexpr int kMostRounds = 25;  // of reweighting, which comes to an end after a few
  const auto rows = static_cast<Eigen::Index>(points.size());
  const auto columns = static_cast<Eigen::Index>(2 * fit.begins.size());
  const Eigen::MatrixXd g = constraints(fit.from);
  std::vector<double> before = residuals(points, fit, units);
  for (int round = 0; round < kMostRounds; ++round) {
    Eigen::MatrixXd a = Eigen::MatrixXd::Zero(rows, columns);
    Eigen::VectorXd b(rows);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      const auto column = static_cast<Eigen::Index>(2 * fit.piece_of(i));
      const double weight = std::sqrt(huber_weight(before[i] / sigma, huber)) / units[i];
      a(row, column) = weight;
      a(row, column + 1) = weight * points[i].size;
      b(row) = weight * points[i].time;
    }
    const Eigen::VectorXd x = constrained_least_squares(a, b, g);
    for (std::size_t k = 0; k < fit.lines.size(); ++k) {
      const auto column = static_cast<Eigen::Index>(2 * k);
      fit.lines[k] = {std::max(x(column), 0.0), std::max(x(column + 1), 0.0)};
    }
    const std::vector<double> after = residuals(points, fit, units);
    double change = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      change = std::max(change, std::abs(after[i] - before[i]));
    }
    before = after;
    if (change < converged) {
      break;
    }
  }
}

PieceFit choose_pieces(std::span<const FitPoint> points, double sigma, double huber, int max_pieces) {
  std::optional<PieceFit> best;
  double least = std::numeric_limits<double>::infinity();
  for (const Segmentation& begins : best_segmentations(points, sigma, huber, max_pieces)) {
    PieceFit fit = fit_segmentation(points, begins, sigma, huber);
    const double value = criterion(points, fit, sigma);
    if (!best || value < least) {
      least = value;
      best = std::move(fit);
    }
  }
  return *best;
}

double polish(PieceFit& fit, std::span<const FitPoint> points, double huber) {
  constexpr int kRounds = 3;  // in turn: units hang on the fit, and the fit on the units
  double sigma = 1;
  for (int round = 0; round < kRounds; ++round) {
    const Units units = units_by_cost(points, fit);
    sigma = residual_scale(residuals(points, fit, units), 2 * fit.lines.size());
    refine(fit, points, units, sigma, huber);
  }
  return sigma;
}

}  // namespace commtune
