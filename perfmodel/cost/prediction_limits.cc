#include "perfmodel/cost/prediction_limits.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "perfmodel/base/normal.h"

namespace commtune {

namespace {

double sign_of(Limit limit) { return limit == Limit::kLower ? -1 : 1; }

std::size_t parameters_of(const Fit& fit) { return 2 * fit.curve.pieces().size(); }

bool knows_covariance(const Fit& fit) {
  const std::size_t parameters = parameters_of(fit);
  return parameters > 0 && fit.covariance.size() == parameters * parameters;
}

/// The exact limit of a fit's cost.
class ExactLimit {
 public:
  ExactLimit(const Fit& fit, Limit limit) : fit_(fit), sign_(sign_of(limit)) {}

  bool is_open() const { return knows_covariance(fit_) || fit_.quality.p90_relative > 0; }

  double operator()(std::size_t piece, double bytes) const {
    const CurvePiece& line = fit_.curve.pieces()[piece];
    const double cost = line.alpha.count() + line.beta.value * bytes;
    const double doubt =
        std::max(kNormal90 * standard_error(fit_, piece, bytes), fit_.quality.p90_relative * cost);
    return std::max(0.0, cost + sign_ * doubt);
  }

 private:
  const Fit& fit_;
  const double sign_;
};

struct Point {
  double bytes, cost;
};

/// The line through two points, without a negative parameter: where it would need one, a line through the
/// origin that is below both of them, or above both.
CurvePiece chord(Bytes from, Point start, Point end, Limit limit) {
  const double beta = (end.cost - start.cost) / (end.bytes - start.bytes);
  const double alpha = start.cost - beta * start.bytes;
  if (alpha >= 0) return {from, Seconds{alpha}, SecondsPerByte{beta}};
  const Point& through = limit == Limit::kLower ? start : end;
  return {from, Seconds{0}, SecondsPerByte{through.cost / through.bytes}};
}

/// Where a piece ends, as far as samples tell.
double end_of(const Fit& fit, std::size_t piece) {
  const std::vector<CurvePiece>& pieces = fit.curve.pieces();
  const Bytes end = piece + 1 < pieces.size() ? pieces[piece + 1].from : fit.largest;
  return std::max(static_cast<double>(end.count), static_cast<double>(pieces[piece].from.count) + 1);
}

}  // namespace

Curve prediction_limit(const Fit& fit, Limit limit) {
  const ExactLimit exact(fit, limit);
  if (!exact.is_open()) return fit.curve;
  std::vector<CurvePiece> moved;
  double before = 0;  // a cost never falls
  for (std::size_t i = 0; i < fit.curve.pieces().size(); ++i) {
    const Bytes from = fit.curve.pieces()[i].from;
    Point start{static_cast<double>(from.count), 0}, end{end_of(fit, i), 0};
    start.cost = std::max(before, exact(i, start.bytes));
    end.cost = std::max(start.cost, exact(i, end.bytes));
    moved.push_back(chord(from, start, end, limit));
    before = moved.back().alpha.count() + moved.back().beta.value * end.bytes;
  }
  return Curve(std::move(moved));
}

double standard_error(const Fit& fit, std::size_t piece, double bytes) {
  if (!knows_covariance(fit)) return 0;
  const std::size_t parameters = parameters_of(fit);
  const auto entry = [&](std::size_t row, std::size_t column) {
    return fit.covariance[(2 * piece + row) * parameters + 2 * piece + column];
  };
  const double variance = entry(0, 0) + bytes * (entry(0, 1) + entry(1, 0)) + bytes * bytes * entry(1, 1);
  return std::sqrt(std::max(0.0, variance));
}

Seconds standard_error(const Fit& fit, Bytes size) {
  const std::vector<CurvePiece>& pieces = fit.curve.pieces();
  const double cost = fit.curve(size).count(), startup = std::min(cost, fit.curve.least_alpha().count());
  const double between = fit.deviation.startup * startup + fit.deviation.rate * (cost - startup);
  std::size_t piece = 0;
  while (piece + 1 < pieces.size() && pieces[piece + 1].from <= size) ++piece;
  return Seconds{std::hypot(between, standard_error(fit, piece, static_cast<double>(size.count)))};
}

Cluster at_limits(const Cluster& cluster, Limit limit) {
  Cluster moved = cluster;
  const auto move = [&](Fit& fit) {
    fit.curve = prediction_limit(fit, limit);
    fit.covariance.clear();
  };
  for (auto& [kind, link] : moved.links) {
    for (Fit* fit : {&link.alone, &link.streamed, &link.duplex}) move(*fit);
  }
  for (OperationFit& operation : moved.operations) {
    for (Fit* fit : {&operation.alone, &operation.streamed}) move(*fit);
  }
  for (const auto scalar : kScalars) {
    Scalar& moving = moved.*scalar;
    moving.value = std::max(0.0, moving.value + sign_of(limit) * moving.half_width * kNormal90 / kNormal95);
  }
  return moved;
}

}  // namespace commtune
