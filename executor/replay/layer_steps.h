#pragma once
// A profile's layers as steps of a replay under a plan, and what its gradients hold. For the sources of this
// folder.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/roads/road.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune {

struct LayerStep {
  Seconds backward{}, update_and_forward{};
  TensorRange tensors;
  bool releases = false;  // its gradients are the last that some message waits for
};

class LayerSteps {
 public:
  /// profile  outlives this
  LayerSteps(const Profile& profile, int workers, Result result);

  /// As SessionWorkload's.
  void follow(const Plan& plan);

  const Profile& profile() const { return profile_; }
  const std::vector<LayerStep>& all() const { return steps_; }
  Release release() const { return release_; }
  /// So many times the pattern is what every rank puts in.
  int times() const { return times_; }
  /// Of the patterns.
  Result expected() const { return expected_; }

  /// throws  Error{kConflict}: this element of a gradient, which has this value, is not what it must be
  [[noreturn]] void refuse(int rank, int workers, TensorId tensor, std::size_t index, float value,
                           std::uint64_t iteration) const;

 private:
  const Profile& profile_;
  const int workers_;
  const Result result_;
  std::vector<LayerStep> steps_;
  Release release_ = Release::kGradient;  // of the plan
  int times_ = 1;
  Result expected_;
};

/// Elements of a tensor that timed iterations compare.
std::array<std::size_t, 3> spots(std::size_t elements);

}  // namespace commtune
