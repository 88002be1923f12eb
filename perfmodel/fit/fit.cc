#include "perfmodel/fit/fit.h"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "perfmodel/base/error.h"
#include "perfmodel/base/normal.h"
#include "perfmodel/base/random.h"
#include "perfmodel/fit/fit_doubt.h"
#include "perfmodel/fit/fit_quality.h"
#include "perfmodel/fit/piecewise.h"
#include "perfmodel/fit/sample_spread.h"
#include "perfmodel/fit/segmentation.h"

namespace commtune {

namespace {

constexpr Bytes kLargestExact{std::uint64_t{1} << 53};  // beyond it a double skips bytes

[[noreturn]] void reject(const std::string& what) { throw Error(ErrorCode::kBadInput, what); }

// --- samples as points ----------------------------------------------------------------------------------

void check_samples(std::span<const Sample> samples) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].size > kLargestExact) {
      reject("sample " + std::to_string(i) + ": size = " + std::to_string(samples[i].size.count) +
             " B: must be at most 2^53");
    }
    const double time = samples[i].time.count(), half = samples[i].half_width.count();
    if (!(time > 0 && std::isfinite(time))) {
      reject("sample " + std::to_string(i) + ": time = " + std::to_string(time) +
             " s: must be positive and finite");
    }
    if (!(half >= 0 && std::isfinite(half))) {
      reject("sample " + std::to_string(i) + ": half width = " + std::to_string(half) +
             " s: must be finite and not negative");
    }
  }
  const auto [least, most] = std::minmax_element(
      samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.size < b.size; });
  if (samples.empty() || least->size == most->size) {
    reject("a fit needs samples of at least two distinct sizes");
  }
}

/// Sorted by size, with units.
std::vector<FitPoint> points_of(std::span<const Sample> samples) {
  const std::vector<double> errors = relative_standard_errors(samples);
  std::vector<FitPoint> points;
  points.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    points.push_back({static_cast<double>(samples[i].size.count), samples[i].time.count(),
                      std::hypot(kOwnSpread, errors[i]), 0});
  }
  std::sort(points.begin(), points.end(), [](const FitPoint& a, const FitPoint& b) {
    return a.size != b.size ? a.size < b.size : a.time < b.time;
  });
  set_units(points);
  return points;
}

/// The noise that the search for pieces assumes: what neighbours show, at least the samples' own spread.
/// The fewer the samples, the less their median can be trusted, so it is raised.
double search_sigma(std::span<const FitPoint> points) {
  return std::max(1.0, neighbour_noise(points) * (1 + 4 / static_cast<double>(points.size())));
}

// --- what a fit says of itself --------------------------------------------------------------------------

Curve curve_of(const PieceFit& fit) {
  std::vector<CurvePiece> pieces;
  for (std::size_t k = 0; k < fit.lines.size(); ++k) {
    Line line = fit.lines[k];
    if (k > 0) {  // what rounding took away
      const CurvePiece& before = pieces.back();
      line.alpha += std::max(0.0, before.alpha.count() + before.beta.value * fit.from[k] - line(fit.from[k]));
    }
    pieces.push_back(
        {Bytes{static_cast<std::uint64_t>(fit.from[k])}, Seconds{line.alpha}, SecondsPerByte{line.beta}});
  }
  return Curve(std::move(pieces));
}

FitQuality quality_of(std::span<const FitPoint> points, const PieceFit& fit) {
  std::vector<double> measured, predicted;
  for (std::size_t i = 0; i < points.size(); ++i) {
    measured.push_back(points[i].time);
    predicted.push_back(fit.lines[fit.piece_of(i)](points[i].size));
  }
  return fit_quality(measured, predicted, units_of(points));
}

// --- drawing curves -------------------------------------------------------------------------------------

/// A root R with R R' = covariance. By way of the correlations, since seconds and seconds per byte are many
/// orders apart; what is not positive semi-definite by rounding is cut off.
Eigen::MatrixXd square_root(const Eigen::MatrixXd& covariance) {
  const Eigen::VectorXd deviation = covariance.diagonal().cwiseMax(0).cwiseSqrt();
  const Eigen::VectorXd inverse = deviation.unaryExpr([](double d) { return d > 0 ? 1 / d : 0; });
  const Eigen::MatrixXd correlation = inverse.asDiagonal() * covariance * inverse.asDiagonal();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(correlation);
  return deviation.asDiagonal() * solver.eigenvectors() *
         solver.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal();
}

/// The pieces with their parameters moved by `by`, kept a cost: nothing negative, nothing falling.
Curve moved(std::vector<CurvePiece> pieces, const Eigen::VectorXd& by) {
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    const auto parameter = static_cast<Eigen::Index>(2 * k);
    CurvePiece& piece = pieces[k];
    piece.alpha = Seconds{std::max(0.0, piece.alpha.count() + by(parameter))};
    piece.beta = SecondsPerByte{std::max(0.0, piece.beta.value + by(parameter + 1))};
    if (k > 0) {
      const CurvePiece& before = pieces[k - 1];
      const Seconds end = before.alpha + before.beta * piece.from;
      piece.alpha = std::max(piece.alpha, end - piece.beta * piece.from);
    }
  }
  return Curve(std::move(pieces));
}

// --- order statistics -----------------------------------------------------------------------------------

/// How many of n sorted values on either side the 95 % interval of their median leaves out: the largest k
/// with P(Binomial(n, 1/2) <= k - 1) <= 2.5 %; 0 where even the range covers less.
std::size_t values_outside_interval(std::size_t n) {
  constexpr std::size_t kMostExact = 1000;  // beyond it 2^-n is no double, and the normal limit is good
  if (n > kMostExact) {
    const auto count = static_cast<double>(n);
    return static_cast<std::size_t>((count - kNormal95 * std::sqrt(count)) / 2);
  }
  double term = std::ldexp(1.0, -static_cast<int>(n)), sum = term;
  std::size_t k = 0;
  while (sum <= 0.025 && k < n / 2) {
    ++k;
    term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
    sum += term;
  }
  return k == 0 ? 0 : k - 1;
}

}  // namespace

void FitOptions::check() const {
  if (max_pieces < 1 || max_pieces > 8) {
    reject("max_pieces = " + std::to_string(max_pieces) + ": must be 1 to 8");
  }
  if (!(huber > 0 && std::isfinite(huber))) {
    reject("huber = " + std::to_string(huber) + ": must be positive and finite");
  }
  if (bootstrap < 0 || bootstrap > 1'000'000) {
    reject("bootstrap = " + std::to_string(bootstrap) + ": must be 0 to 1000000");
  }
}

Fit fit_curve(std::span<const Sample> samples, const FitOptions& options) {
  options.check();
  check_samples(samples);
  const std::vector<FitPoint> points = points_of(samples);
  PieceFit pieces = choose_pieces(points, search_sigma(points), options.huber, options.max_pieces);
  const double sigma = polish(pieces, points, options.huber);

  Fit fit;
  fit.curve = curve_of(pieces);
  fit.quality = quality_of(points, pieces);
  fit.smallest = Bytes{static_cast<std::uint64_t>(points.front().size)};
  fit.largest = Bytes{static_cast<std::uint64_t>(points.back().size)};
  if (options.bootstrap > 1) {
    fit.covariance = covariance_of(points, pieces, options, sigma);
  }
  return fit;
}

std::vector<Curve> draw_curves(const Fit& fit, int count, std::uint64_t seed) {
  const std::vector<CurvePiece>& pieces = fit.curve.pieces();
  const auto parameters = static_cast<Eigen::Index>(2 * pieces.size());
  const auto n = static_cast<std::size_t>(std::max(count, 0));
  if (fit.covariance.size() != static_cast<std::size_t>(parameters * parameters) || parameters == 0) {
    return std::vector<Curve>(n, fit.curve);
  }
  const Eigen::MatrixXd root =
      square_root(Eigen::Map<const Eigen::MatrixXd>(fit.covariance.data(), parameters, parameters));
  Random random(seed);
  std::vector<Curve> curves;
  curves.reserve(n);
  Eigen::VectorXd normal(parameters);
  for (std::size_t c = 0; c < n; ++c) {
    for (Eigen::Index i = 0; i < parameters; ++i) {
      normal(i) = random.normal();
    }
    curves.push_back(moved(pieces, root * normal));
  }
  return curves;
}

MedianInterval median_interval(std::span<double> values) {
  if (values.empty()) {
    reject("a median needs at least one value");
  }
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const double median = n % 2 == 1 ? values[n / 2] : std::midpoint(values[n / 2 - 1], values[n / 2]);
  const std::size_t outside = values_outside_interval(n);
  return {median, values[outside], values[n - 1 - outside]};
}

}  // namespace commtune
