#pragma once
// What would happen if, as tables for other programs: `tune scale --csv FILE`, `tune map --csv FILE`.

#include <string>
#include <vector>

#include "tuner/whatif.h"

namespace commtune::api {

/// A line of names, then a line a point (RFC 4180): seconds and ratios without units, as the names say.
std::string to_csv(const std::vector<tuner::ScaleCurve>& curves);
std::string to_csv(const std::vector<tuner::ServerPoint>& points);
std::string to_csv(const std::vector<tuner::PhaseCell>& cells);

}  // namespace commtune::api
