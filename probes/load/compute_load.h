#pragma once
// A fixed compute step, again and again, on a thread of its own: what interference and jitter are measured
// on.

#include <atomic>
#include <thread>
#include <vector>

#include "probes/moments.h"
#include "probes/step_kind.h"

namespace commtune::probes {

/// How long a step shall last: a layer of a large model.
inline constexpr Nanoseconds kStepLength{2'000'000};

class ComputeLoad {
 public:
  explicit ComputeLoad(StepKind kind);

  /// Runs so many steps on the calling thread and returns how long each took.
  std::vector<Nanoseconds> run(int steps);

  /// Runs steps on a thread of this object's own until stop(), which returns how long each took that had
  /// ended by then (at most kMostEnds).
  void start();
  std::vector<Nanoseconds> stop();

 private:
  void step(Nanoseconds due);

  StepKind kind_;
  double work_ = 0;  ///< keeps the arithmetic from being left out
  std::atomic<bool> stopping_{false};
  std::vector<Nanoseconds> durations_;  ///< the thread's until it is joined
  std::jthread thread_;                 ///< last: joins before what it uses is destroyed
};

}  // namespace commtune::probes
