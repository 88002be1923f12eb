#include "perfmodel/fit/least_squares.h"

#include <gmock/gmock.h>

#include <Eigen/QR>
#include <limits>

#include "perfmodel/base/random.h"

namespace commtune {
namespace {

Eigen::MatrixXd random_matrix(Random& random, Eigen::Index rows, Eigen::Index columns) {
  return Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return random.normal(); });
}

/// The least ||A x - b|| over x >= 0, by trying every set of columns that may be positive.
double brute_force_residual(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  double least = b.norm();
  for (unsigned set = 1; set < (1U << a.cols()); ++set) {
    std::vector<Eigen::Index> columns;
    for (Eigen::Index j = 0; j < a.cols(); ++j) {
      if ((set >> j) & 1U) {
        columns.push_back(j);
      }
    }
    const Eigen::MatrixXd part = a(Eigen::all, columns);
    const Eigen::VectorXd x = part.colPivHouseholderQr().solve(b);
    if (x.minCoeff() >= 0) {
      least = std::min(least, (part * x - b).norm());
    }
  }
  return least;
}

TEST(NonnegativeLeastSquares, EqualsExhaustiveSearch) {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const auto columns = static_cast<Eigen::Index>(1 + random.below(6));
    const Eigen::MatrixXd a =
        random_matrix(random, columns + static_cast<Eigen::Index>(random.below(5)), columns);
    const Eigen::VectorXd b = random_matrix(random, a.rows(), 1);
    const Eigen::VectorXd x = nonnegative_least_squares(a, b);
    EXPECT_GE(x.minCoeff(), 0);
    EXPECT_NEAR((a * x - b).norm(), brute_force_residual(a, b), 1e-9);
  }
}

TEST(NonnegativeLeastSquares, IsZeroWhereEverythingPointsAway) {
  const Eigen::MatrixXd a = Eigen::MatrixXd::Identity(3, 3);
  EXPECT_EQ(nonnegative_least_squares(a, Eigen::Vector3d(-1, -2, 0)), Eigen::Vector3d::Zero());
}

TEST(ConstrainedLeastSquares, WithoutActiveConstraintsIsOrdinary) {
  Random random(2);
  const Eigen::MatrixXd a = random_matrix(random, 10, 3);
  const Eigen::Vector3d truth(1, 2, 3);
  const Eigen::VectorXd x = constrained_least_squares(a, a * truth, Eigen::MatrixXd::Identity(3, 3));
  EXPECT_LT((x - truth).norm(), 1e-12);
}

TEST(ConstrainedLeastSquares, SatisfiesTheOptimalityConditions) {
  // Of min ||Ax - b|| over Gx >= 0: the gradient is a combination of G's rows with weights >= 0 on rows that
  // are tight, so the best such combination leaves nothing of it.
  Random random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const auto columns = static_cast<Eigen::Index>(2 + random.below(5));
    const Eigen::MatrixXd a = random_matrix(random, columns + 5, columns);
    const Eigen::VectorXd b = random_matrix(random, a.rows(), 1);
    Eigen::MatrixXd g(columns + 2, columns);
    g << Eigen::MatrixXd::Identity(columns, columns), random_matrix(random, 2, columns);
    const Eigen::VectorXd x = constrained_least_squares(a, b, g);
    const Eigen::VectorXd slack = g * x;
    EXPECT_GE(slack.minCoeff(), -1e-9);
    const Eigen::VectorXd gradient = a.transpose() * (a * x - b);
    std::vector<Eigen::Index> tight;
    for (Eigen::Index i = 0; i < g.rows(); ++i) {
      if (slack(i) < 1e-8) {
        tight.push_back(i);
      }
    }
    Eigen::VectorXd rest = gradient;
    if (!tight.empty()) {
      const Eigen::MatrixXd normals = g(tight, Eigen::all).transpose();
      rest -= normals * nonnegative_least_squares(normals, gradient);
    }
    EXPECT_LT(rest.norm(), 1e-7);
  }
}

TEST(ConstrainedLeastSquares, TakesColumnsOfVeryDifferentScale) {
  // 50 us + 1 ns/B at sizes up to 100 MB: columns eight orders apart.
  Eigen::MatrixXd a(4, 2);
  a << 1, 4, 1, 1e3, 1, 1e6, 1, 1e8;
  const Eigen::Vector2d truth(50e-6, 1e-9);
  const Eigen::VectorXd x = constrained_least_squares(a, a * truth, Eigen::MatrixXd::Identity(2, 2));
  EXPECT_NEAR(x(0) / truth(0), 1, 1e-9);
  EXPECT_NEAR(x(1) / truth(1), 1, 1e-9);
}

}  // namespace
}  // namespace commtune
