#pragma once
// What computes while interference and jitter are measured.

#include <cstdint>

namespace commtune::probes {

/// What a compute step is.
enum class StepKind : std::uint32_t {
  kTimeline,  ///< waiting for the step's end on an absolute time line, as an accelerator leaves the processor
  kProcessor,  ///< arithmetic on one core
  kGpu,        ///< kernels on the GPU whose memory messages lie in
};

}  // namespace commtune::probes
