#pragma once
// A cluster's fits with what each of them is of, for whoever looks at them one by one.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "perfmodel/cluster.h"

namespace commtune {

/// One fit of a cluster. Valid for as long as the cluster is.
struct FitSource {
  const Fit* fit = nullptr;
  std::variant<LinkClass, const OperationFit*> of;
  std::string_view setting;  ///< "alone", "streamed", "duplex"
};

/// "link inter-host, streamed"; "all-reduce, all-to-all ring, 4 workers, alone".
std::string describe(const FitSource& source);

/// Those of the fits that have a curve.
std::vector<FitSource> fits_of(const OperationFit& operation);
std::vector<FitSource> link_fits_of(const Cluster& cluster);
/// All of them: links, then operations in the cluster's order.
std::vector<FitSource> fits_of(const Cluster& cluster);

}  // namespace commtune
