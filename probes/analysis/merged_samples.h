#pragma once
// One sample a size.

#include <vector>

#include "perfmodel/fit/fit.h"

namespace commtune::probes {

/// Of several at one size: their median, as certain as they agree. group  at least one
Sample merged(const std::vector<Sample>& group);

/// By size.
std::vector<Sample> merged_by_size(const std::vector<Sample>& samples);

}  // namespace commtune::probes
