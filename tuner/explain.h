#pragma once
// Why a plan takes as long as it does: `tune MODEL --explain`.

#include <string>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "perfmodel/simulate/simulate.h"

namespace commtune::tuner {

/// A stretch of the critical path, in the order of time.
struct CriticalStep {
  enum class Kind { kBackward, kMessage, kForward } kind = Kind::kBackward;
  std::string what;  ///< "backward pass, layers 106 to 42", "message 3 (25.0 MiB)"
  Seconds from{}, until{};
};

/// What would change if one thing were different and the plan stayed the same.
struct Improvement {
  std::string what;  ///< "twice the bandwidth"
  Seconds gain{};    ///< of the iteration
};

struct Explanation {
  Prediction prediction;
  Timeline timeline;
  std::vector<CriticalStep> critical_path;
  std::vector<Improvement> improvements;  ///< the three that help most, the best first
  Bytes worker_traffic;                   ///< sent by one worker in an iteration
  Bytes server_traffic;                   ///< sent by one server; 0 on all-reduce roads
  double communication_ratio = 0;         ///< communication over compute
};

/// Errors as road_cost's. The plan must satisfy check().
Explanation explain(const Profile& profile, const Cluster& cluster, const Plan& plan);

}  // namespace commtune::tuner
