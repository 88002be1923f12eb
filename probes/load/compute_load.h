#pragma once
// A fixed compute step, again and again, on a thread of its own: what interference and jitter are measured
// on.

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "probes/load/compute_step.h"
#include "probes/moments.h"

namespace commtune::probes {

class ComputeLoad {
 public:
  explicit ComputeLoad(std::unique_ptr<ComputeStep> step);
  ~ComputeLoad() { stopping_ = true; }
  ComputeLoad(const ComputeLoad&) = delete;
  ComputeLoad& operator=(const ComputeLoad&) = delete;

  /// Runs so many steps on the calling thread and returns how long each took.
  std::vector<Nanoseconds> run(int steps);

  /// Runs steps on a thread of this object's own until stop(), which returns how long each took that had
  /// ended by then (at most kMostEnds).
  void start();
  std::vector<Nanoseconds> stop();

 private:
  const std::unique_ptr<ComputeStep> step_;
  std::atomic<bool> stopping_{false};
  std::vector<Nanoseconds> durations_;  ///< the thread's until it is joined
  std::jthread thread_;                 ///< last: joins before what it uses is destroyed
};

}  // namespace commtune::probes
