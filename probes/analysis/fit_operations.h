#pragma once
// From samples of operations to fits that a plan may rest on. Pure.

#include <span>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/fit/fit.h"
#include "probes/sample.h"

namespace commtune::probes {

/// What was measured of one operation of a road.
struct OperationSamples {
  Quantity quantity;  ///< with one in flight
  std::vector<Sample> alone, streamed;
};

struct FittedOperations {
  std::vector<OperationFit> fits;
  Deviation formula_deviation;  ///< Cluster::formula_deviation
};

/// Samples that span what plans send (enough_sizes.h) make a curve of their own, which bends between them as
/// the road's formula over the links does. Fewer make none, alone or streamed: searching over many roads
/// would find the one whose curve errs most in its favour. Its curve is the formula's with start-up and time
/// per byte as well measured roads have them, moved to the sizes that there are, and as much in doubt as
/// formulas are found to be on roads held out. Only where no link was measured, or no other road streamed, do
/// two sizes make a curve.
///
/// links  of the cluster are fitted already
FittedOperations fit_operations(std::span<const OperationSamples> operations, const Cluster& links,
                                const FitOptions& options);

}  // namespace commtune::probes
