#pragma once
// Words for what costs rest on.

#include <string>

#include "perfmodel/cost/road_cost.h"

namespace commtune {

/// "1 worker", "4 workers".
std::string counted(int count, const std::string& what);

/// The sizes that were measured: "4 B to 96 MiB".
std::string range_text(const RoadCost& cost);

}  // namespace commtune
