#pragma once
// The sizes at which a quantity is first measured.

#include <vector>

#include "perfmodel/base/units.h"

namespace commtune::probes {

/// Sizes from first to last with ratio `factor`, whole float32 elements, last included, each once.
std::vector<Bytes> log_sizes(Bytes first, Bytes last, double factor);

}  // namespace commtune::probes
