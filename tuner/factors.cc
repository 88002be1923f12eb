#include "tuner/factors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "perfmodel/base/digest.h"
#include "perfmodel/base/normal.h"
#include "perfmodel/base/random.h"
#include "perfmodel/cost/stage_cost.h"
#include "tuner/race.h"

namespace commtune::tuner {

namespace {

/// The logarithm of what an iteration takes where all that it sends is moved by z, over that at 0.
double at(const Response& response, double z) {
  return (z < 0 ? -response.less : response.more) * z / kNormal90;
}

/// One normal value a draw, the same for whoever has the same name.
class NamedNormals {
 public:
  NamedNormals(std::size_t count, std::uint64_t seed) : count_(count), seed_(seed) {}

  const std::vector<double>& of(const std::string& name) {
    auto [known, is_new] = values_.try_emplace(name);
    if (is_new) {
      Random random(Digest().add(name).add(seed_).value());
      for (std::size_t i = 0; i < count_; ++i) known->second.push_back(random.normal());
    }
    return known->second;
  }

 private:
  std::size_t count_;
  std::uint64_t seed_;
  std::map<std::string, std::vector<double>> values_;
};

}  // namespace

RoadCost moved(RoadCost cost, double z, double plan_deviation) {
  const auto factor = [&](const Deviation& of) {
    return CostFactor{std::exp(z * std::hypot(of.startup, plan_deviation)),
                      std::exp(z * std::hypot(of.rate, plan_deviation))};
  };
  const CostDeviation of = cost.deviation;
  return scaled(std::move(cost), factor(of.alone), factor(of.streamed));
}

std::vector<CostError> errors_of(const RoadCost& cost, double plan_deviation) {
  const auto& [alone, streamed] = cost.deviation;
  if (!alone.opposed && !streamed.opposed) {
    const auto together = [&](const Deviation& of) {
      return LogFactor{std::hypot(of.startup, plan_deviation), std::hypot(of.rate, plan_deviation)};
    };
    return {{together(alone), together(streamed)}};
  }
  const auto own = [](const Deviation& of) { return LogFactor{of.startup, of.opposed ? -of.rate : of.rate}; };
  std::vector<CostError> errors{{own(alone), own(streamed)}};
  const LogFactor of_plans{plan_deviation, plan_deviation};
  if (plan_deviation > 0) errors.push_back({of_plans, of_plans});
  return errors;
}

RoadCost with_error(RoadCost cost, double z, const CostError& error) {
  const auto factor = [z](const LogFactor& of) {
    return CostFactor{std::exp(z * of.startup), std::exp(z * of.rate)};
  };
  return scaled(std::move(cost), factor(error.alone), factor(error.streamed));
}

Seconds comparable_time(Simulator& simulator, const FlatPlan& plan, const RoadCost& cost) {
  return simulator.time(plan, among_neighbours(FlatRoad(cost)));
}

Seconds comparable_to(Seconds predicted, Simulator& simulator, const FlatPlan& plan, const RoadCost& cost) {
  return is_among_few(cost) ? comparable_time(simulator, plan, cost) : predicted;
}

std::vector<Seconds> comparable_times(const std::vector<Entry>& ranking, const Planning& job) {
  Simulator simulator(job.work);
  std::vector<Seconds> times;
  times.reserve(ranking.size());
  for (const Entry& entry : ranking) {
    const Seconds predicted = entry.prediction.iteration;
    const RoadOption* const option = job.option_of(entry.plan.road);
    const bool was_run = entry.run_deviation > 0;
    times.push_back(option == nullptr || was_run
                        ? predicted
                        : comparable_to(predicted, simulator, FlatPlan(entry.plan, job.work), option->cost));
  }
  return times;
}

Seconds expected_time(Simulator& simulator, const FlatPlan& plan, const RoadCost& cost, Seconds predicted) {
  // What e to a normal value takes more on average is half its variance: 0.5 %.
  constexpr double kOfMatter = 0.1;
  constexpr double kNode = 1.7320508075688772, kWeight = 1.0 / 6;  // square root of 3
  if (cost.deviation.largest() < kOfMatter) return predicted;
  const Seconds base = comparable_to(predicted, simulator, plan, cost);
  Seconds expected = predicted;
  for (const CostError& error : errors_of(cost, 0)) {
    for (const double z : {-kNode, kNode}) {
      const RoadCost at_z = with_error(cost, z, error);
      expected += kWeight * (comparable_time(simulator, plan, at_z) - base);
    }
  }
  return expected;
}

std::vector<Response> responses(const std::vector<Entry>& ranking, const std::vector<Seconds>& comparable,
                                const Planning& job, const Cluster& cluster, const OutOfTime& out_of_time) {
  Simulator simulator(job.work);
  std::vector<Response> all;
  all.reserve(ranking.size());
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    const Entry& entry = ranking[i];
    Response& response = all.emplace_back();
    if (is_out(out_of_time)) continue;
    if (entry.run_deviation > 0) {
      const double far = kNormal90 * entry.run_deviation;
      response = {true, 1, -far, far};
      continue;
    }
    const Seconds late = kNormal90 * job.delay_of(entry.plan.road).deviation;
    const RoadOption* const priced = job.option_of(entry.plan.road);
    const RoadCost cost = priced != nullptr ? priced->cost : road_cost(entry.plan.road, cluster, job.workers);
    const double of_plans = cluster.plan_deviation;
    const double of_road = cost.deviation.largest();
    response.doubted = of_road > 0 || of_plans > 0 || late.count() > 0;
    if (!response.doubted) continue;
    if (of_plans > 0)
      response.own = kOwnPart * of_plans * of_plans / (of_road * of_road + of_plans * of_plans);
    const auto add = [&](double low, double high) {
      response.less = -std::hypot(response.less, std::min(0.0, low));
      response.more = std::hypot(response.more, std::max(0.0, high));
    };
    add(-late / entry.prediction.iteration, late / entry.prediction.iteration);
    const FlatPlan flat(entry.plan, job.work);
    for (const CostError& error : errors_of(cost, of_plans)) {
      const auto logarithm = [&](double z) {
        const RoadCost at_z = with_error(cost, z, error);
        return std::log(comparable_time(simulator, flat, at_z) / comparable[i]);
      };
      const auto [low, high] = std::minmax({logarithm(-kNormal90), logarithm(kNormal90)});
      add(low, high);
    }
  }
  return all;
}

Times with_factors(const Times& times, const std::vector<Entry>& ranking,
                   const std::vector<Response>& responses, std::size_t count, std::uint64_t seed,
                   Seconds least) {
  NamedNormals normals(count, seed);
  Times result(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Response& response = responses[i];
    const Plan& own = ranking[i].plan;
    const std::vector<double>& road =
        normals.of(own.transport.empty() ? describe(own.road) : describe(own.road) + "@" + own.transport);
    const std::vector<double>& plan = normals.of(plan_digest(ranking[i]));
    result[i].reserve(count);
    for (std::size_t d = 0; d < count; ++d) {
      const double z = std::sqrt(1 - response.own) * road[d] + std::sqrt(response.own) * plan[d];
      const double time = times[i][d % times[i].size()];
      result[i].push_back(std::max(std::min(time, least.count()), time * std::exp(at(response, z))));
    }
  }
  return result;
}

}  // namespace commtune::tuner
