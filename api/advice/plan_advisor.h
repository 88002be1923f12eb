#pragma once
// Plans models on what a probe knows so far, and tells it which roads' costs would change what is chosen
// (tuner/information.h).

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/profile.h"
#include "probes/sampling/advisor.h"
#include "tuner/information.h"

namespace commtune::api {

struct PlanAdvisorOptions {
  std::vector<Profile> profiles;  ///< at least one
  /// True: nothing else is asked of the cluster, so a probe may end when all their choices are certain.
  bool are_all = false;
  std::vector<Road> roads;           ///< that may be taken; empty: roads_for() the cluster
  std::function<Seconds()> clock{};  ///< time since some moment; empty: the machine's
};

/// The models that nobody has to name.
std::vector<Profile> shipped_profiles();

class PlanAdvisor : public probes::Advisor {
 public:
  explicit PlanAdvisor(PlanAdvisorOptions options);

  /// Roads count by the mean of their values over the profiles. Where time is out before all were planned,
  /// the next look begins with those that were left out.
  probes::Advice advise(const Cluster& known, Seconds limit) override;

 private:
  std::optional<tuner::Information> plan(const Profile& profile, const Cluster& known, Seconds until) const;

  PlanAdvisorOptions options_;
  std::size_t first_ = 0;  ///< profile that the next look begins with
};

}  // namespace commtune::api
