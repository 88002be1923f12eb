#pragma once
// What is known of a host's GPUs without timing anything: by NVIDIA's management library, which is loaded
// when the program runs.

#include <map>
#include <string>

namespace commtune::probes {

struct GpuFacts {
  /// "gpu_0": "NVIDIA H100 80GB HBM3, 81559 MiB, at most 1980 and 2619 MHz, 700 W, PCIe 5 x16, 18 NVLinks,
  /// ECC": what decides how fast it is.
  std::map<std::string, std::string> what;
  std::map<std::string, std::string> releases;  ///< "nvidia_driver": "580.159.04", "nccl": "2.29.7"
};

/// Of the GPUs that this process may use, as CUDA numbers them; none where there are none, or in a build
/// without CUDA. What a GPU does not tell is left out.
GpuFacts gpu_facts();

}  // namespace commtune::probes
