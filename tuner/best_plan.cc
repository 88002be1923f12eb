#include "tuner/best_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tuner/factors.h"

namespace commtune::tuner {

namespace {

/// Tuning is not tried on a road on which a method takes this much longer untuned than on another.
constexpr double kPromising = 1.05;

/// The job's roads that suit a method, those that could be fastest first: of its architecture, and with
/// servers that get messages as its system hands them out, where those were priced.
std::vector<const RoadOption*> roads_by_bound(const Planning& job, const Method& method) {
  const bool whole = method.servers == Assignment::kHashed && !job.whole.empty();
  std::vector<const RoadOption*> roads;
  for (const RoadOption& option : job.roads) {
    if (architecture_of(option.road) != method.architecture) continue;
    if (!whole || !taking_messages_whole(option.road)) roads.push_back(&option);
  }
  for (std::size_t i = 0; whole && i < job.whole.size(); ++i) roads.push_back(&job.whole[i]);
  std::stable_sort(roads.begin(), roads.end(),
                   [](const RoadOption* a, const RoadOption* b) { return a->floor() < b->floor(); });
  return roads;
}

/// Of a method's roads those on which its tuned plan may be the fastest, going by what it takes untuned.
std::vector<const RoadOption*> promising_roads(const Method& method, const Planning& job,
                                               Simulator& simulator) {
  std::vector<const RoadOption*> roads = roads_by_bound(job, method);
  if (method.untuned == nullptr || roads.size() < 2) return roads;
  Seconds fastest = kNoLimit;
  std::vector<Seconds> times;  // infinite: not promising
  times.reserve(roads.size());
  for (const RoadOption* option : roads) {
    const Seconds limit = fastest * kPromising;
    const auto untuned = [&] { return FlatPlan(job.with_barrier(method.untuned(job, *option)), job.work); };
    times.push_back(option->floor() > limit ? kNoLimit
                                            : simulator.time(untuned(), FlatRoad(option->cost), limit));
    fastest = std::min(fastest, times.back());
  }
  std::vector<const RoadOption*> promising;
  for (std::size_t i = 0; i < roads.size(); ++i) {
    if (times[i] <= fastest * kPromising) promising.push_back(roads[i]);
  }
  return promising;
}

RoadOption to_beat(RoadOption option, Seconds known) {
  option.to_beat = known;
  return option;
}

}  // namespace

bool ExpectedOrder::is_faster(Candidate& one, Candidate& other) {
  const bool alike = one.predicted.plan.road == other.predicted.plan.road;
  if (alike) return one.time() < other.time();
  return one.time() < most(other) && expected(one) < expected(other);
}

Seconds ExpectedOrder::most(const Candidate& candidate) {
  if (candidate.expected) return *candidate.expected;
  const double deviation = candidate.cost->deviation.largest();
  return candidate.time() * std::exp(deviation * deviation / 2);
}

Seconds ExpectedOrder::expected(Candidate& candidate) {
  if (!candidate.expected)
    candidate.expected = expected_time(simulator_, FlatPlan(candidate.predicted.plan, job_.work),
                                       *candidate.cost, candidate.time());
  return *candidate.expected;
}

std::optional<Candidate> best_of(const Method& method, const Planning& job, Simulator& simulator,
                                 const OutOfTime& out_of_time) {
  ExpectedOrder order(job, simulator);
  std::optional<Candidate> best;
  for (const RoadOption* option : promising_roads(method, job, simulator)) {
    if (best && option->floor() >= ExpectedOrder::most(*best)) break;
    if (is_out(out_of_time)) break;
    Plan plan = job.with_barrier(best && method.untuned != nullptr
                                     ? method.build(job, to_beat(*option, ExpectedOrder::most(*best)))
                                     : method.build(job, *option));
    plan.method = std::string(method.name);
    const Prediction prediction = simulator.run(plan, option->cost);
    Candidate candidate{{std::move(plan), prediction}, &option->cost};
    if (!best || order.is_faster(candidate, *best)) best = std::move(candidate);
  }
  return best;
}

}  // namespace commtune::tuner
