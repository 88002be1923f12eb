// In a build without CUDA's headers.

#include "probes/host/gpu_facts.h"

namespace commtune::probes {

GpuFacts gpu_facts() { return {}; }

}  // namespace commtune::probes
