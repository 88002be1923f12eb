#pragma once
// What computes while interference and jitter are measured: one fixed step after the other.

#include <memory>

#include "probes/moments.h"
#include "probes/step_kind.h"

namespace commtune::probes {

/// How long a step shall last where nothing else runs: a layer of a large model.
inline constexpr Nanoseconds kStepLength{2'000'000};

class ComputeStep {
 public:
  virtual ~ComputeStep() = default;
  ComputeStep() = default;
  ComputeStep(const ComputeStep&) = delete;
  ComputeStep& operator=(const ComputeStep&) = delete;

  /// Does the next step, on the thread that calls it, which is always the same; returns how long it took:
  /// from the end of the one before, or from the first call.
  virtual Nanoseconds run() = 0;
};

/// Of the host.
std::unique_ptr<ComputeStep> make_timeline_step();
std::unique_ptr<ComputeStep> make_processor_step();

}  // namespace commtune::probes
