#pragma once
// Wait-free back-propagation (Poseidon: Zhang et al., USENIX ATC 2017; S-Caffe: Awan et al., PPoPP 2017).

#include "tuner/planning.h"

namespace commtune::tuner {

/// BytePS's default partition, which the survey's runs over servers had.
inline constexpr Bytes kServerPartition{4'096'000};

/// A message a tensor, as soon as its gradient exists. Over servers cut into 4,096,000 B and with no limit on
/// what is in flight, by BytePS's hash where servers take messages whole; all-reduce operations go one at a
/// time.
Plan wfbp(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
