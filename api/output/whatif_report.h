#pragma once
// What people read of curves and maps.

#include <string>

#include "api/actions/whatif.h"

namespace commtune::api {

/// The best method at every number of workers, then every method's speed-up and efficiency.
/// method  "": the best one; else the method whose times are shown in full. Throws Error{kNotFound}.
std::string scale_report(const ScaleOutcome& outcome, const std::string& method);

std::string servers_report(const ServersOutcome& outcome);

/// Two grids of letters with their legends: the fastest method of the literature, and the road of the fastest
/// plan of all. Rows and columns are the two axes that have several values.
std::string map_report(const MapOutcome& outcome);

}  // namespace commtune::api
