#include "probes/load/compute_load.h"

#include <utility>

namespace commtune::probes {

ComputeLoad::ComputeLoad(std::unique_ptr<ComputeStep> step) : step_(std::move(step)) {
  durations_.reserve(kMostEnds);
}

std::vector<Nanoseconds> ComputeLoad::run(int steps) {
  for (int i = 0; i < steps && !stopping_ && durations_.size() < kMostEnds; ++i)
    durations_.push_back(step_->run());
  return durations_;
}

void ComputeLoad::start() {
  thread_ = std::jthread([this] { run(static_cast<int>(kMostEnds)); });
}

std::vector<Nanoseconds> ComputeLoad::stop() {
  // The step under way may end after the bytes do: it does not count.
  stopping_ = true;
  thread_.join();
  if (!durations_.empty()) durations_.pop_back();
  return std::move(durations_);
}

}  // namespace commtune::probes
