#pragma once
// Small dense least squares with inequality constraints, for fits whose parameters must not be negative.

#include <Eigen/Core>

namespace commtune {

/// argmin ||A x - b|| over x >= 0, by Lawson and Hanson's active sets (Solving Least Squares Problems, 1974,
/// chapter 23). A of any shape; for a few dozen columns at most.
Eigen::VectorXd nonnegative_least_squares(const Eigen::MatrixXd& A, const Eigen::VectorXd& b);

/// argmin ||A x - b|| over G x >= 0, as a least-distance problem (same chapter).
///
/// A  full column rank, at least as many rows as columns; columns may differ in scale by many orders
/// G  any number of rows
Eigen::VectorXd constrained_least_squares(const Eigen::MatrixXd& A, const Eigen::VectorXd& b,
                                          const Eigen::MatrixXd& G);

}  // namespace commtune
