#pragma once
// A road as JSON, the same in plans and in clusters.

#include <nlohmann/json_fwd.hpp>

#include "perfmodel/base/json_reader.h"
#include "perfmodel/plan.h"

namespace commtune {

/// {"kind": "all-to-all", "algorithm": "ring"} or {"kind": "parameter-server", "servers": 4, "placement":
/// "colocated", "assignment": "even"}, and, written only where they are not the usual, "local_sum": "first"
/// ("none") and "first": 1 (0). Throws Error{kBadInput} with the path.
Road road_from_json(const JsonPlace& place);
nlohmann::json to_json(const Road& road);

}  // namespace commtune
