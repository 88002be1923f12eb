#pragma once
// A cluster at the edge of the doubt in its fits: what its costs may be at least, and at most.

#include <array>
#include <cstddef>

#include "perfmodel/cluster.h"

namespace commtune {

/// The ends of intervals that hold what they are about nine times out of ten.
enum class Limit { kLower, kUpper };

/// What a message may cost, size by size: the fitted cost less, or plus, the larger of two doubts. The one is
/// what the fit's covariance leaves open of the curve; the other what the curve leaves unexplained of its
/// samples (their 90th percentile), which comes again with every message of that size, so that more messages
/// do not average it out. Their larger, not their sum, as the covariance grows with the residuals already
/// (fit_doubt.h).
///
/// Of each piece the chord from its start to the next one's is taken (of the last one to the largest size
/// that was measured), which lies on the far side of the exact limit. Where a fit knows no doubt, its own
/// curve.
Curve prediction_limit(const Fit& fit, Limit limit);

/// Standard error in seconds of a piece's cost at a size, from the two by two block of the covariance that
/// belongs to the piece's parameters. 0 where the covariance was not estimated.
double standard_error(const Fit& fit, std::size_t piece, double bytes);

/// Standard error of the fitted cost at a size: what the covariance leaves open, and what the samples leave
/// open between their sizes (Fit::deviation), which are independent of each other.
Seconds standard_error(const Fit& fit, Bytes size);

/// Every fit and every scalar at the same end of its interval; no covariances. That all of them are there at
/// once is far less likely than one in ten, so what follows from it is further out than a 90 % interval's
/// end.
Cluster at_limits(const Cluster& cluster, Limit limit);

/// What a cluster knows beside its fits.
inline constexpr std::array<Scalar Cluster::*, 7> kScalars{&Cluster::reduce_seconds_per_byte,
                                                           &Cluster::copy_seconds_per_byte,
                                                           &Cluster::interference,
                                                           &Cluster::jitter_seconds,
                                                           &Cluster::contention,
                                                           &Cluster::head_of_line_seconds,
                                                           &Cluster::connection_head_of_line_seconds};

}  // namespace commtune
