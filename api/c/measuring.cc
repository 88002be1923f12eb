#include "api/c/measuring.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "api/advice/plan_advisor.h"
#include "executor/transport/registry/make_transport.h"
#include "perfmodel/base/error.h"
#include "probes/probe.h"
#include "tuner/tuner.h"

namespace commtune::api {
namespace {

/// Nobody watches, and nothing is stored before the end.
class SilentSink : public probes::EventSink {
 public:
  void on_progress(const probes::ProbeProgress& /*progress*/) override {}
  void on_sample(const probes::ProbeSample& /*sample*/) override {}
};

}  // namespace

std::optional<Cluster> probe_by_ranks(std::shared_ptr<Bootstrap> bootstrap, const TrainingOptions& options,
                                      const RankProbe& wanted) {
  probes::ProbeOptions probing;
  probing.budget = wanted.budget;
  probing.traffic = wanted.traffic;
  probing.chunk = options.session.chunk;
  probing.cluster_name = wanted.cluster;
  std::optional<PlanAdvisor> advisor;
  if (wanted.profile) {
    probing.models.push_back(wanted.profile->model);
    PlanAdvisorOptions advising;
    advising.profiles.push_back(*wanted.profile);
    advising.are_all = true;
    advisor.emplace(std::move(advising));
  }
  const Deadline until = Clock::now() + std::chrono::duration_cast<Clock::duration>(options.session.timeout);
  const std::unique_ptr<Transport> transport =
      make_transport(options.transport, std::move(bootstrap), options.network, until);
  SilentSink sink;
  probes::ProbeResult found = probes::probe(*transport, probing, sink, advisor ? &*advisor : nullptr);
  if (transport->peers().rank != 0) return std::nullopt;
  return std::move(found.cluster);
}

PlannedTime plan_for(const Profile& profile, const Cluster& cluster, int workers, Barrier barrier) {
  if (workers < 1)
    throw Error(ErrorCode::kBadInput, fmt::format("workers = {}: must be at least 1", workers));
  tuner::TuneOptions options;
  options.workers = workers;
  options.barrier = barrier;
  const tuner::Answer answer = tuner::tune(profile, cluster, options);
  const tuner::Entry& chosen = answer.ranking.at(answer.chosen);
  return {chosen.plan, chosen.prediction.iteration};
}

}  // namespace commtune::api
