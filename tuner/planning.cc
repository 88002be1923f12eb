#include "tuner/planning.h"

#include <algorithm>
#include <set>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"
#include "perfmodel/bound/bound.h"
#include "perfmodel/cost/road_kind.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/cost/topology.h"
#include "perfmodel/fit/curve_ops.h"

namespace commtune::tuner {

namespace {

/// Of the servers that a question may have besides evenly cut messages of every worker.
struct ServerKinds {
  bool hashed = false, local_sum = false;
};

void add_servers(std::vector<Road>& roads, const std::set<int>& counts, Placement placement,
                 ServerKinds kinds, WorkerRow spared = {}) {
  for (const LocalSum sum : {LocalSum::kNone, LocalSum::kFirst}) {
    if (sum == LocalSum::kFirst && !kinds.local_sum) continue;
    for (const Assignment assignment : {Assignment::kEven, Assignment::kHashed}) {
      if (assignment == Assignment::kHashed && !kinds.hashed) continue;
      for (const int servers : counts) {
        if (servers > 1 || assignment == Assignment::kEven)
          roads.emplace_back(
              ParameterServer{servers, placement, assignment, sum, first_server(spared, servers)});
      }
    }
  }
}

/// 1, 2, 4, ... up to `most`, and `most` itself.
std::set<int> doubling(int most) {
  std::set<int> counts;
  for (int s = 1; s < most; s *= 2) counts.insert(s);
  if (most > 0) counts.insert(most);
  return counts;
}

RoadOption priced(const Road& road, const Cluster& cluster, int workers, const Workload& work) {
  RoadCost cost = road_cost(road, cluster, workers);
  const LowerBounds bounds = lower_bounds(work, cost);
  return {road, std::move(cost), bounds.expected, bounds.simulated};
}

Seconds compute_of(const Profile& profile) {
  return profile.forward() + profile.backward() + profile.update();
}

}  // namespace

Architecture architecture_of(const Road& road) {
  return match(
      road, [](const AllReduce&) { return Architecture::kAllReduce; },
      [](const ParameterServer&) { return Architecture::kParameterServer; });
}

std::string to_string(Architecture architecture) {
  return architecture == Architecture::kAllReduce ? "all-to-all" : "parameter servers";
}

RoadCost scaled(RoadCost cost, const CostFactor& alone, const CostFactor& streamed) {
  for (StageCost* stage : {&cost.both, &cost.reduce, &cost.distribute}) {
    stage->alone = recalibrated(stage->alone, alone.startup, alone.rate);
    stage->occupancy = lower(recalibrated(stage->occupancy, streamed.startup, streamed.rate), stage->alone);
  }
  return cost;
}

RoadCost slower(RoadCost cost, double factor) {
  const CostFactor on_all{factor, factor};
  return scaled(std::move(cost), on_all, on_all);
}

RoadCost with_delay(RoadCost cost, const RoadDelay& delay, double deviations) {
  cost.straggling += delay.mean + deviations * delay.deviation;
  return cost;
}

Planning::Planning(const Profile& job_profile, const Cluster& cluster, int job_workers,
                   const std::vector<Road>& candidates, const OutOfTime& out_of_time)
    : profile(job_profile),
      profile_digest(digest(job_profile)),
      layout(layout_digest(job_profile)),
      work(job_profile, slowdown_of(cluster, job_workers)),
      keys(job_profile),
      alone(compute_of(job_profile)),
      workers(job_workers) {
  if (candidates.empty()) throw Error(ErrorCode::kBadInput, "roads: at least one must be allowed");
  std::string why;
  for (const Road& road : candidates) {
    if (is_out(out_of_time)) {
      if (roads.empty()) throw Error(ErrorCode::kTimeout, kNothingInTime);
      break;
    }
    try {
      roads.push_back(priced(road, cluster, workers, work));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      why = error.what();
    }
  }
  if (roads.empty()) throw Error(ErrorCode::kNotFound, why);
  std::stable_sort(roads.begin(), roads.end(), [](const RoadOption& a, const RoadOption& b) {
    return architecture_of(a.road) < architecture_of(b.road);
  });
}

Planning::Planning(const Profile& job_profile, int job_workers, std::vector<RoadOption> options,
                   const JobSlowdown& slowdown)
    : profile(job_profile),
      profile_digest(digest(job_profile)),
      layout(layout_digest(job_profile)),
      work(job_profile, slowdown),
      keys(job_profile),
      alone(compute_of(job_profile)),
      workers(job_workers),
      roads(std::move(options)) {
  if (roads.empty()) throw Error(ErrorCode::kBadInput, "roads: at least one must be allowed");
}

void Planning::price_whole_messages(const Cluster& cluster) {
  std::vector<Road> twins;
  for (const RoadOption& option : roads) {
    const std::optional<Road> twin = taking_messages_whole(option.road);
    if (twin && option_of(*twin) == nullptr) twins.push_back(*twin);
  }
  for (const Road& twin : worth_pricing(twins, cluster, workers))
    whole.push_back(priced(twin, cluster, workers, work));
}

const RoadOption* Planning::option_of(const Road& road) const {
  for (const std::vector<RoadOption>* options : {&roads, &whole}) {
    const auto found = std::ranges::find(*options, road, &RoadOption::road);
    if (found != options->end()) return &*found;
  }
  return nullptr;
}

RoadDelay Planning::delay_of(const Road& road) const {
  const RoadOption* const option = option_of(road);
  return option != nullptr ? option->delay : RoadDelay{};
}

void Planning::delay(const std::function<RoadDelay(const Road&)>& by) {
  for (std::vector<RoadOption>* options : {&roads, &whole}) {
    for (RoadOption& option : *options) {
      option.delay = by(option.road);
      option.cost = with_delay(std::move(option.cost), option.delay);
      option.simulated += option.delay.mean;
    }
  }
}

std::optional<Road> taking_messages_whole(const Road& road) {
  return match(
      road, [](const AllReduce&) { return std::optional<Road>{}; },
      [](ParameterServer servers) -> std::optional<Road> {
        if (servers.servers == 1 || servers.assignment == Assignment::kHashed) return std::nullopt;
        servers.assignment = Assignment::kHashed;
        return servers;
      });
}

Plan Planning::empty_plan(const Road& road) const {
  Plan plan;
  plan.model = profile.model;
  plan.profile = profile_digest;
  plan.layout = layout;
  plan.workers = workers;
  plan.road = road;
  return plan;
}

Plan Planning::with_barrier(Plan plan) const {
  if (barrier) plan.barrier = *barrier;
  return plan;
}

std::vector<Road> worth_pricing(const std::vector<Road>& roads, const Cluster& cluster, int workers) {
  const auto is_measured = [&](const Road& road) {
    return find_operation(cluster, road, operations_of(road).both, workers) != nullptr;
  };
  const auto has_measured_all = [&](ParameterServer servers) {
    servers.servers = workers;
    servers.first = 0;
    return std::ranges::find(roads, Road{servers}) != roads.end() && is_measured(servers);
  };
  std::vector<Road> worth;
  for (const Road& road : roads) {
    const bool guessed = match(
        road, [](const AllReduce&) { return false; },
        [&](const ParameterServer& servers) {
          return servers.placement == Placement::kColocated && !is_measured(servers) &&
                 has_measured_all(servers);
        });
    if (!guessed) worth.push_back(road);
  }
  return worth;
}

std::vector<Road> roads_for(const Cluster& cluster, int workers, const RoadLimits& limits) {
  std::set<Collective> algorithms{Collective::kRing};
  const int colocated = limits.colocated_servers > 0 ? std::min(limits.colocated_servers, workers) : workers;
  ServerKinds kinds{limits.hashed, may_sum_locally(topology_of(cluster, workers))};
  const WorkerRow spared = spared_workers(topology_of(cluster, workers));
  std::set<int> beside = doubling(colocated), apart = doubling(limits.dedicated_servers);
  const auto add_algorithm = [&](const AllReduce& measured) { algorithms.insert(measured.algorithm); };
  const auto add_counts = [&](const ParameterServer& measured) {
    const bool same_host = measured.placement == Placement::kColocated;
    if (measured.servers <= (same_host ? colocated : limits.dedicated_servers)) {
      (same_host ? beside : apart).insert(measured.servers);
    }
  };
  for (const OperationFit& fit : cluster.operations) {
    match(fit.road, add_algorithm, add_counts);
  }
  if (spared.count > 0) beside.insert(std::min(spared.count, colocated));
  std::vector<Road> roads;
  roads.reserve(algorithms.size() + 2 * (beside.size() + apart.size()));
  for (const Collective algorithm : algorithms) roads.emplace_back(AllReduce{algorithm});
  add_servers(roads, beside, Placement::kColocated, kinds, spared);
  add_servers(roads, apart, Placement::kDedicated, kinds);
  return roads;
}

}  // namespace commtune::tuner
