#pragma once
// What was measured of a road elsewhere, and what that was to its formula there. MODEL.md section 4.4.

#include "perfmodel/cluster.h"
#include "perfmodel/fit/curve.h"
#include "perfmodel/fit/curve_ops.h"
#include "perfmodel/plan.h"

namespace commtune {

bool of_library(const Road& road);

/// What a fit calibrates of a formula.
enum class SendMode { kAlone, kStreamed };

/// The fit that is nearest in number of workers and servers (in ratio), of workers that share one host, or do
/// not, as these do: what links inside a host are off by says nothing of those between hosts. One of servers
/// that are assigned their messages alike before all others; of two that are as near the one nearer in
/// workers, then the one with more servers, whatever order they were measured in. What a stream of messages
/// costs above the links' share is the executor's work for each transfer: where no road of this kind was
/// streamed another one tells.
const OperationFit* nearest_fit(const Road& road, const Cluster& cluster, int workers, SendMode mode);

/// What a measurement elsewhere was to the formula there, for start-up and for bytes.
struct Calibration {
  double alpha = 1, beta = 1;

  Curve operator()(const Curve& formula) const { return recalibrated(formula, alpha, beta); }
};

/// By bytes beyond the measured sizes, where the curve goes on as its formula does: streams of the largest
/// may still be more start-ups than bytes.
Calibration calibration(const Fit& fit, const Curve& formula);

/// By the streams of a fit.
Calibration calibration_of_streams(const OperationFit& fit, const Cluster& cluster);

}  // namespace commtune
