#pragma once
// Arithmetic on cost curves: what the formulas of MODEL.md section 4 are put together from. Every result is
// again a valid Curve (non-negative, never falling); a breakpoint that does not land on a whole byte is
// rounded to the side on which the cost does not fall. An empty curve costs nothing and is the neutral
// element of `sum` and `upper`.

#include "perfmodel/fit/curve.h"

namespace commtune {

/// alpha + beta * m, in seconds and bytes.
Curve line(double alpha, double beta);

/// factor * c(m); factor >= 0.
Curve times(const Curve& curve, double factor);

/// c(share * m): the cost of a message of which only a share (or of which several, share > 1) passes here.
Curve of_share(const Curve& curve, double share);

/// a(m) + b(m).
Curve sum(const Curve& a, const Curve& b);

/// The larger and the smaller of the two, size by size.
Curve upper(const Curve& a, const Curve& b);
Curve lower(const Curve& a, const Curve& b);

/// The least that a byte costs in a message of any size: the largest beta with t(m) >= beta * m for every m.
SecondsPerByte least_time_per_byte(const Curve& curve);

/// What every message costs beside so much per byte: the largest alpha with t(m) >= alpha + beta * m for
/// every m; for a beta of at most least_time_per_byte().
Seconds start_up_beside(SecondsPerByte beta, const Curve& curve);

/// c(m) with every latency multiplied by alpha_factor and every time per byte by beta_factor; raised where
/// the cost would fall at a breakpoint.
Curve recalibrated(const Curve& curve, double alpha_factor, double beta_factor);

}  // namespace commtune
