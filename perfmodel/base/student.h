#pragma once
// Student's t distribution: how far the mean of a few values may be off.

namespace commtune {

/// By how many of its standard errors the mean of `degrees` + 1 independent values of one normal distribution
/// is farther off, to either side, with the probability `outside`: t(1, 0.05) = 12.7, t(10, 0.05) = 2.23, and
/// 1.96 in the limit.
///
/// degrees  at least 1
/// outside  in (0, 1); below some 1e-12 rounding shows
/// Source: Student (Biometrika 6, 1908); the probability as a finite sum: Abramowitz, Stegun (1964), 26.7.3
/// and 26.7.4, inverted by bisection. O(degrees).
double student_t(int degrees, double outside);

}  // namespace commtune
