#pragma once
// The sizes at which a quantity is first measured.

#include <vector>

#include "perfmodel/base/units.h"

namespace commtune::probes {

/// Sizes from `first` to `last`, each about `factor` times the one before (factor > 1), rounded to whole
/// float32 elements. Strictly rising; `last` is included.
std::vector<Bytes> log_sizes(Bytes first, Bytes last, double factor);

}  // namespace commtune::probes
