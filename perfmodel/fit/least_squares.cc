#include "perfmodel/fit/least_squares.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <vector>

namespace commtune {

namespace {

/// Least squares over the columns in `free`, zero elsewhere.
Eigen::VectorXd solve_free(const Eigen::MatrixXd& A, const Eigen::VectorXd& b,
                           const std::vector<Eigen::Index>& free) {
  Eigen::VectorXd x = Eigen::VectorXd::Zero(A.cols());
  if (free.empty()) {
    return x;
  }
  const Eigen::MatrixXd part = A(Eigen::all, free);
  const Eigen::VectorXd solution = part.colPivHouseholderQr().solve(b);
  for (std::size_t i = 0; i < free.size(); ++i) {
    x(free[i]) = solution(static_cast<Eigen::Index>(i));
  }
  return x;
}

/// Moves x towards target until the first column would turn negative, and takes such columns out of `free`.
/// At least one leaves if any target is negative.
void step_to_boundary(Eigen::VectorXd& x, const Eigen::VectorXd& target, std::vector<Eigen::Index>& free) {
  double step = 1;
  Eigen::Index first = -1;
  for (const Eigen::Index j : free) {
    const double room = target(j) <= 0 ? x(j) / (x(j) - target(j)) : 1;
    if (target(j) <= 0 && (first < 0 || room < step)) {
      step = std::isfinite(room) ? room : 0;
      first = j;
    }
  }
  x += step * (target - x);
  std::erase_if(free, [&](Eigen::Index j) {
    const bool binds = j == first || (target(j) <= 0 && x(j) <= 0);
    x(j) = binds ? 0 : x(j);
    return binds;
  });
}

bool any_negative(const Eigen::VectorXd& target, const std::vector<Eigen::Index>& free) {
  return std::any_of(free.begin(), free.end(), [&](Eigen::Index j) { return target(j) <= 0; });
}

}  // namespace

Eigen::VectorXd nonnegative_least_squares(const Eigen::MatrixXd& A, const Eigen::VectorXd& b) {
  constexpr double kTolerance = 1e-12;  // of the largest product: rounding of sums of some thousand of them
  Eigen::VectorXd x = Eigen::VectorXd::Zero(A.cols());
  std::vector<Eigen::Index> free;
  const double scale = std::max(A.cwiseAbs().maxCoeff() * b.cwiseAbs().maxCoeff(), 1e-300);
  for (Eigen::Index round = 0; round < 3 * A.cols() + 10; ++round) {
    // Free the column along which the residual falls fastest.
    Eigen::VectorXd gradient = A.transpose() * (b - A * x);
    for (const Eigen::Index j : free) {
      gradient(j) = 0;
    }
    Eigen::Index best = 0;
    if (gradient.maxCoeff(&best) <= kTolerance * scale) {
      break;
    }
    free.push_back(best);
    // Move to the optimum over the free columns, binding those that would turn negative on the way.
    Eigen::VectorXd target = solve_free(A, b, free);
    while (any_negative(target, free)) {
      step_to_boundary(x, target, free);
      target = solve_free(A, b, free);
    }
    x = target;
  }
  return x;
}

Eigen::VectorXd constrained_least_squares(const Eigen::MatrixXd& A, const Eigen::VectorXd& b,
                                          const Eigen::MatrixXd& G) {
  // Columns of equal length, so that seconds and seconds per byte are solved for alike.
  const Eigen::VectorXd length = A.colwise().norm();
  const Eigen::MatrixXd scaled = A * length.cwiseInverse().asDiagonal();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(scaled);
  const Eigen::Index n = A.cols();
  const Eigen::MatrixXd r = qr.matrixQR().topRows(n).triangularView<Eigen::Upper>();
  const Eigen::VectorXd rotated = (qr.householderQ().transpose() * b).head(n);
  const auto solve_r = [&](const Eigen::VectorXd& v) -> Eigen::VectorXd {
    return r.triangularView<Eigen::Upper>().solve(v);
  };

  // Rows of length one: a constraint keeps its meaning, and violations compare.
  Eigen::MatrixXd g = G * length.cwiseInverse().asDiagonal();
  g.rowwise().normalize();
  const Eigen::VectorXd free_optimum = solve_r(rotated);
  if ((g * free_optimum).minCoeff() >= 0) {
    return free_optimum.cwiseQuotient(length);
  }

  // With z = R x - Q'b: the shortest z with (G R^-1) z >= -G R^-1 Q'b, by way of its dual.
  const Eigen::MatrixXd h =
      r.transpose().triangularView<Eigen::Lower>().solve(g.transpose());  // (G R^-1)', n x constraints
  Eigen::MatrixXd dual(n + 1, g.rows());
  dual.topRows(n) = h;
  dual.row(n) = -(h.transpose() * rotated).transpose();
  Eigen::VectorXd unit = Eigen::VectorXd::Zero(n + 1);
  unit(n) = 1;
  const Eigen::VectorXd residual = dual * nonnegative_least_squares(dual, unit) - unit;
  const Eigen::VectorXd z = -residual.head(n) / residual(n);
  return solve_r(z + rotated).cwiseQuotient(length);
}

}  // namespace commtune
