#include "probes/sampling/sampling_plan.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "probes/analysis/enough_sizes.h"

namespace commtune::probes {
namespace {

/// What a link would take: 200 us and 8 ns a byte, with a protocol switch at 64 KiB.
double truth(Bytes size) {
  const auto bytes = static_cast<double>(size.count);
  return size < Bytes{64 << 10} ? 200e-6 + 8e-9 * bytes : 500e-6 + 8e-9 * bytes;
}

Target message_target(int destination = 1) {
  Target target;
  target.quantity.source = 0;
  target.quantity.destination = destination;
  target.largest = Bytes{64 << 20};
  target.startup = Seconds{100e-6};
  target.beta = SecondsPerByte{8e-9};
  return target;
}

SamplingPlanOptions small_options() {
  SamplingPlanOptions options;
  options.last = Bytes{16 << 20};
  options.budget = Seconds{4};
  return options;
}

/// Visits until nothing fits any more; time passes as the truth says, with relative noise.
struct Simulation {
  std::vector<ProbeSample> samples;
  Seconds spent{0};
  Bytes sent;

  void run(SamplingPlan& sampling_plan, Seconds budget, double noise,
           std::optional<Bytes> traffic = std::nullopt) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> factor(1, noise);
    for (int i = 0; i < 10'000; ++i) {
      const auto left = traffic ? std::optional(*traffic - sent) : std::nullopt;
      const auto visit = sampling_plan.next(budget - spent, left);
      if (!visit) return;
      std::vector<double> times;
      for (int r = 0; r < visit->repetitions; ++r) {
        times.push_back(truth(visit->size) * std::max(0.1, factor(random)));
        spent += Seconds{times.back() * visit->messages + 1e-3};
      }
      spent += visit->first ? Seconds{1e-3} : Seconds{0};
      sent += visit->sends;
      samples.push_back(sampling_plan.record(*visit, times));
    }
    FAIL() << "the sampling plan has no end";
  }

  Bytes largest() const {
    Bytes size;
    for (const ProbeSample& sample : samples) size = std::max(size, sample.sample.size);
    return size;
  }
};

/// Of a first visit to an operation of so long.
int first_row(Seconds each) {
  Target target;
  target.quantity.subject = Subject::kOperation;
  target.quantity.workers = 4;
  target.largest = Bytes{4};
  target.startup = each;
  target.beta = SecondsPerByte{1e-12};
  return SamplingPlan({target}, small_options(), {}).next(Seconds{4}, std::nullopt)->repetitions;
}

TEST(SamplingPlan, OperationsFollowEachOtherForSomeMilliseconds) {
  EXPECT_EQ(first_row(Seconds{0.99e-3}), 10);
  EXPECT_EQ(first_row(Seconds{20e-6}), 30);  // and as many on another visit
  EXPECT_EQ(first_row(Seconds{15e-3}), 3);
  EXPECT_EQ(first_row(Seconds{0.15}), 1);  // a twentieth of the budget
}

/// The largest size of an operation that is measured beside a link in so long. Its start-up is a hundredth of
/// what 64 KiB take.
/// dearer_from  bytes of messages so large take twice as long
Bytes largest_of_operation(Bytes chunk, const Road& road, Seconds left = Seconds{0.35},
                           Bytes dearer_from = Bytes{1 << 30}) {
  Target target;
  target.quantity.subject = Subject::kOperation;
  target.quantity.road = road;
  target.quantity.workers = 4;
  target.largest = Bytes{16 << 20};
  target.startup = Seconds{100e-6};
  target.beta = SecondsPerByte{150e-9};
  Target link = message_target();
  link.weight = 10;
  SamplingPlanOptions options = small_options();
  options.chunk = chunk;
  SamplingPlan sampling_plan({target, link}, options, {});
  Bytes largest;
  while (const auto visit = sampling_plan.next(left, std::nullopt)) {
    const double bytes = static_cast<double>(visit->size.count);
    const double per_byte = visit->size < dearer_from ? 150e-9 : 300e-9;
    const double each = visit->target == 0 ? 100e-6 + per_byte * bytes : truth(visit->size);
    const std::vector<double> times(static_cast<std::size_t>(visit->repetitions), each);
    left -= Seconds{each * static_cast<double>(times.size()) + 1e-3};
    if (visit->target == 0) largest = std::max(largest, visit->size);
    sampling_plan.record(*visit, times);
  }
  return largest;
}

TEST(SamplingPlan, GoesOnUntilAnOperationsChunksOverlap) {
  const Bytes without = largest_of_operation(Bytes{0}, AllReduce{Collective::kRing});
  EXPECT_LT(without, Bytes{480 << 10});
  EXPECT_GE(largest_of_operation(Bytes{60 << 10}, AllReduce{Collective::kRing}), Bytes{480 << 10});
  const ParameterServer hashed{4, Placement::kColocated, Assignment::kHashed};
  EXPECT_EQ(largest_of_operation(Bytes{60 << 10}, hashed), without);
}

TEST(SamplingPlan, GoesOnWhereBytesBecomeDearer) {
  const AllReduce ring{Collective::kRing};
  const Bytes alike = largest_of_operation(Bytes{0}, ring, Seconds{2});
  EXPECT_GE(largest_of_operation(Bytes{0}, ring, Seconds{2}, alike).count, 2 * alike.count);
}

TEST(SamplingPlan, EndsWhenEverySizeIsKnownWell) {
  SamplingPlan sampling_plan({message_target()}, small_options(), {});
  Simulation simulation;
  simulation.run(sampling_plan, Seconds{1000}, 0.001);
  EXPECT_TRUE(sampling_plan.complete());
  EXPECT_TRUE(sampling_plan.missing(5).empty());
  EXPECT_EQ(simulation.largest(), Bytes{16 << 20});
}

TEST(SamplingPlan, NeverSpendsMoreThanItHas) {
  for (const double budget : {0.05, 0.5, 2.0}) {
    SamplingPlan sampling_plan({message_target(), message_target(2)}, small_options(), {});
    Simulation simulation;
    simulation.run(sampling_plan, Seconds{budget}, 0.02);
    EXPECT_LE(simulation.spent.count(), budget * 1.05);
    EXPECT_FALSE(sampling_plan.complete());
    EXPECT_FALSE(sampling_plan.missing(5).empty());
  }
}

TEST(SamplingPlan, KeepsToTheTraffic) {
  SamplingPlan sampling_plan({message_target()}, small_options(), {});
  Simulation simulation;
  simulation.run(sampling_plan, Seconds{1000}, 0.02, Bytes{8 << 20});
  EXPECT_LE(simulation.sent, Bytes{8 << 20});
  EXPECT_LT(simulation.largest(), Bytes{8 << 20});
}

TEST(SamplingPlan, CoversAllTargetsBeforeItRefinesOne) {
  SamplingPlan sampling_plan({message_target(1), message_target(2), message_target(3)}, small_options(), {});
  Simulation simulation;
  simulation.run(sampling_plan, Seconds{0.2}, 0.02);
  for (const int destination : {1, 2, 3}) {
    const auto count =
        std::count_if(simulation.samples.begin(), simulation.samples.end(),
                      [&](const auto& sample) { return sample.quantity.destination == destination; });
    EXPECT_GE(count, 2) << destination;
  }
}

TEST(SamplingPlan, StreamsEachOperationBeforeItRefinesOne) {
  // Where two sizes of each and its stream fit, but not many more.
  std::vector<Target> targets;
  for (const int destination : {1, 2, 3}) {
    for (const int in_flight : {1, kStreaming}) {
      Target target = message_target(destination);
      target.quantity.in_flight = in_flight;
      target.latency = Seconds{200e-6};
      targets.push_back(target);
    }
  }
  SamplingPlan sampling_plan(targets, small_options(), {});
  Simulation simulation;
  simulation.run(sampling_plan, Seconds{0.8}, 0.02);
  for (const int destination : {1, 2, 3}) {
    EXPECT_TRUE(std::ranges::any_of(simulation.samples, [&](const ProbeSample& sample) {
      return sample.quantity.destination == destination && sample.quantity.in_flight > 1;
    })) << destination;
  }
}

/// Roads over four workers, alone and as streams, 12 ns a byte.
std::vector<Target> road_targets() {
  std::vector<Target> targets;
  for (const Collective algorithm : {Collective::kRing, Collective::kHalvingDoubling, Collective::kOneShot}) {
    for (const int in_flight : {1, kStreaming}) {
      Target target = message_target();
      target.quantity = {Subject::kOperation, AllReduce{algorithm}, Operation::kAllReduce, 4};
      target.quantity.in_flight = in_flight;
      target.weight = algorithm == Collective::kRing ? 2 : 0.2;
      target.smallest = Bytes{16};
      target.largest = in_flight == 1 ? Bytes{16 << 20} : Bytes{512 << 10};
      target.latency = Seconds{400e-6};
      target.beta = SecondsPerByte{12e-9};
      targets.push_back(target);
    }
  }
  return targets;
}

TEST(SamplingPlan, BringsEveryRoadToSizesThatAFitMayRestOnBeforeItRefinesAny) {
  const std::vector<Target> targets = road_targets();
  SamplingPlan sampling_plan(targets, small_options(), {});
  std::map<std::size_t, std::set<Bytes>> sizes;
  int visits = 0;
  for (; visits < 100; ++visits) {
    const auto visit = sampling_plan.next(Seconds{100}, std::nullopt);
    ASSERT_TRUE(visit);
    if (!visit->of_first_sizes) break;
    sizes[visit->target].insert(visit->size);
    sampling_plan.record(*visit,
                         std::vector(static_cast<std::size_t>(visit->repetitions), truth(visit->size)));
  }
  EXPECT_EQ(visits, 3 * static_cast<int>(targets.size()));  // and no more than that takes
  for (std::size_t i = 0; i < targets.size(); ++i) {
    ASSERT_FALSE(sizes[i].empty()) << i;
    EXPECT_TRUE(are_enough(sizes[i].size(), *sizes[i].begin(), *sizes[i].rbegin())) << i;
  }
}

/// Of the ring alone, the largest of its first sizes, where each visit takes such a part of the budget.
Bytes largest_first_size(double each) {
  const SamplingPlanOptions options = small_options();
  SamplingPlan sampling_plan(road_targets(), options, {});
  Bytes largest;
  for (Seconds left = options.budget;; left -= each * options.budget) {
    const auto visit = sampling_plan.next(left, std::nullopt);
    if (!visit || !visit->of_first_sizes) return largest;
    if (visit->target == 0) largest = std::max(largest, visit->size);
    sampling_plan.record(*visit,
                         std::vector(static_cast<std::size_t>(visit->repetitions), truth(visit->size)));
  }
}

// Six targets have 18 first sizes, so each may take an 18th of the budget, 0.22 s.
TEST(SamplingPlan, ShowsWhatBytesTakeEarlyWhereNoTimeIsLeftForIt) {
  const Bytes with_time = largest_first_size(0.01), without = largest_first_size(0.03);
  EXPECT_GE(without.count, 8 * with_time.count);
  EXPECT_LT(3 * truth(without), 0.22);
}

TEST(SamplingPlan, BringsLinksToTheirFirstSizesBeforeRoads) {
  std::vector<Target> targets = road_targets();
  const std::size_t link = targets.size();
  targets.push_back(message_target());
  targets.back().startup = Seconds{0.05};  // slow: a second of it gains little
  targets.back().weight = 0.1;
  SamplingPlan sampling_plan(targets, small_options(), {});
  std::set<Bytes> sizes;
  while (sizes.empty() || !are_enough(sizes.size(), *sizes.begin(), *sizes.rbegin())) {
    const auto visit = sampling_plan.next(Seconds{100}, std::nullopt);
    ASSERT_TRUE(visit && visit->of_first_sizes);
    ASSERT_EQ(visit->target, link);
    sizes.insert(visit->size);
    sampling_plan.record(*visit, std::vector(static_cast<std::size_t>(visit->repetitions), 0.05));
  }
  EXPECT_NE(sampling_plan.next(Seconds{100}, std::nullopt)->target, link);
}

const Road kOneShot{AllReduce{Collective::kOneShot}};

/// Seconds of each road's refinement within four seconds, whose truth has a switch and 5 % of noise.
/// sizes  of the one-shot road's
std::map<std::string, double> refined(std::span<const RoadNeed> needs, std::set<Bytes>* sizes = nullptr) {
  SamplingPlan sampling_plan(road_targets(), small_options(), {});
  std::mt19937_64 random(5);
  std::normal_distribution<double> factor(1, 0.05);
  std::map<std::string, double> seconds;
  bool weighed = false;
  for (Seconds left = small_options().budget; const auto visit = sampling_plan.next(left, std::nullopt);) {
    if (!visit->of_first_sizes && !std::exchange(weighed, true)) {
      sampling_plan.weigh(needs);
      continue;
    }
    left -= visit->expected;
    if (weighed) seconds[describe(visit->quantity.road)] += visit->expected.count();
    if (weighed && sizes != nullptr && visit->quantity.road == kOneShot) sizes->insert(visit->size);
    std::vector<double> times;
    times.reserve(static_cast<std::size_t>(visit->repetitions));
    for (int i = 0; i < visit->repetitions; ++i) times.push_back(truth(visit->size) * factor(random));
    sampling_plan.record(*visit, times);
  }
  return seconds;
}

TEST(SamplingPlan, RefinesTheRoadThatPlansNeed) {
  const std::string name = describe(kOneShot);
  const double before = refined({})[name];
  const double after = refined(std::vector<RoadNeed>{{kOneShot, 4, 0.01, 4_KiB, 16_MiB}})[name];
  EXPECT_GT(after, 2 * before);
}

TEST(SamplingPlan, DividesWhatPlansNeedByItsValue) {
  const Road halving{AllReduce{Collective::kHalvingDoubling}};
  const auto with = [&](double one_shot, double of_halving) {
    auto seconds = refined(std::vector<RoadNeed>{{kOneShot, 4, one_shot, 4_KiB, 16_MiB},
                                                 {halving, 4, of_halving, 4_KiB, 16_MiB}});
    return seconds[describe(kOneShot)] / seconds[describe(halving)];
  };
  EXPECT_GT(with(0.09, 0.01), 1.5 * with(0.01, 0.09));
  EXPECT_DOUBLE_EQ(with(0.9, 0.1), with(0.09, 0.01));  // only ratios matter
}

TEST(SamplingPlan, RefinesSizesNearThoseOfPlansMessages) {
  std::set<Bytes> large, small;
  refined(std::vector<RoadNeed>{{kOneShot, 4, 0.01, 4_MiB, 16_MiB}}, &large);
  refined(std::vector<RoadNeed>{{kOneShot, 4, 0.01, 64_B, 256_B}}, &small);
  const auto share = [](const std::set<Bytes>& sizes) {
    const auto count = std::ranges::count_if(sizes, [](Bytes size) { return size >= 64_KiB; });
    return static_cast<double>(count) / static_cast<double>(sizes.size());
  };
  EXPECT_GT(share(large), share(small));
}

TEST(SamplingPlan, BringsATargetThatIsAddedToItsFirstSizesNext) {
  const std::vector<Target> all = road_targets();
  SamplingPlan sampling_plan({all[0], all[1]}, small_options(), {});
  const RoadNeed need{kOneShot, 4, 0.01, 4_KiB, 16_MiB};
  EXPECT_FALSE(sampling_plan.has_target(need));
  std::optional<Visit> visit = sampling_plan.next(Seconds{100}, std::nullopt);
  while (visit && visit->of_first_sizes) {
    sampling_plan.record(*visit,
                         std::vector(static_cast<std::size_t>(visit->repetitions), truth(visit->size)));
    visit = sampling_plan.next(Seconds{100}, std::nullopt);
  }
  sampling_plan.add({all[4], all[5]}, {});
  EXPECT_TRUE(sampling_plan.has_target(need));
  visit = sampling_plan.next(Seconds{100}, std::nullopt);
  ASSERT_TRUE(visit);
  EXPECT_TRUE(visit->of_first_sizes);
  EXPECT_EQ(visit->quantity.road, kOneShot);
  EXPECT_GE(visit->target, 2u);
}

TEST(SamplingPlan, CountsRoadsAsBeforeWhereNothingIsNeeded) {
  const auto before = refined({});
  EXPECT_EQ(refined(std::vector<RoadNeed>{{kOneShot, 4, 0, 4_KiB, 16_MiB}}), before);
  EXPECT_EQ(refined(std::vector<RoadNeed>{{kOneShot, 3, 0.01, 4_KiB, 16_MiB}}), before);  // no target of 3
}

TEST(SamplingPlan, TakesNoSizeFirstForWhichOthersWouldGoWithout) {
  // At 1.2 us a byte a stream of 512 KiB takes seconds, of which there are four.
  std::vector<Target> targets = road_targets();
  for (Target& target : targets) target.beta.value *= 100;
  SamplingPlan sampling_plan(targets, small_options(), {});
  Seconds spent{};
  std::map<std::size_t, int> sizes;
  while (const auto visit = sampling_plan.next(small_options().budget - spent, std::nullopt)) {
    if (!visit->of_first_sizes) break;
    ++sizes[visit->target];
    spent += visit->expected;
    const double each = 400e-6 + 1.2e-6 * static_cast<double>(visit->size.count);
    sampling_plan.record(*visit, std::vector(static_cast<std::size_t>(visit->repetitions), each));
  }
  for (std::size_t i = 0; i < targets.size(); ++i) EXPECT_EQ(sizes[i], 3) << i;
}

TEST(SamplingPlan, RepeatsWhereTheIntervalIsWide) {
  SamplingPlan sampling_plan({message_target()}, small_options(), {});
  Simulation simulation;
  simulation.run(sampling_plan, Seconds{1000}, 0.05);
  for (const ProbeSample& last : simulation.samples) {
    const auto later = std::find_if(simulation.samples.rbegin(), simulation.samples.rend(),
                                    [&](const auto& other) { return other.sample.size == last.sample.size; });
    const double width = later->sample.half_width / later->sample.time;
    EXPECT_TRUE(width <= 0.02 || later->sample.repetitions >= 60) << width;
  }
}

TEST(SamplingPlan, RefinesSizesAroundAProtocolSwitch) {
  // With the time for about a dozen sizes, more of them lie around the switch than where the line is
  // straight.
  SamplingPlanOptions options = small_options();
  options.first = Bytes{256};
  options.factor = 2;
  SamplingPlan sampling_plan({message_target()}, options, {});
  Simulation simulation;
  simulation.run(sampling_plan, Seconds{0.35}, 0.0005);
  int near = 0;
  for (const ProbeSample& sample : simulation.samples) {
    near += sample.sample.size >= Bytes{32 << 10} && sample.sample.size <= Bytes{128 << 10} ? 1 : 0;
  }
  EXPECT_GE(near, 3);
}

TEST(SamplingPlan, VisitsASizeAgainAtAnotherMoment) {
  // 10 links of 11 sizes, some 12 ms a visit: a second for each to be visited once. What a visit says is off
  // by up to 10 % for all of its repetitions, which agree within 0.1 %.
  SamplingPlanOptions options = small_options();
  options.last = Bytes{4096};
  std::vector<Target> targets;
  for (int destination = 1; destination <= 10; ++destination) targets.push_back(message_target(destination));
  SamplingPlan sampling_plan(targets, options, {});
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mood(0.9, 1.1), noise(0.999, 1.001);
  std::map<std::pair<int, Bytes>, std::vector<Seconds>> visits;
  std::map<std::pair<int, Bytes>, ProbeSample> last;
  for (Seconds left = options.budget; left > Seconds{0.5};) {
    const auto visit = sampling_plan.next(left, std::nullopt);
    if (!visit) break;
    const std::pair key{visit->quantity.destination, visit->size};
    visits[key].push_back(left);
    const double of_the_visit = mood(random);
    std::vector<double> times;
    times.reserve(static_cast<std::size_t>(visit->repetitions));
    for (int i = 0; i < visit->repetitions; ++i)
      times.push_back(truth(visit->size) * of_the_visit * noise(random));
    left -= visit->expected;
    last[key] = sampling_plan.record(*visit, times);
  }
  std::size_t again = 0, apart = 0, doubtful = 0;
  for (const auto& [key, moments] : visits) {
    if (moments.size() < 2) continue;
    ++again;
    apart += moments[0] - moments[1] >= 0.09 * options.budget ? 1 : 0;
    // The interval covers what a visit's own repetitions know nothing of.
    const Sample& sample = last[key].sample;
    doubtful += sample.half_width / sample.time > 0.002 ? 1 : 0;
  }
  EXPECT_GT(again, visits.size() / 2);
  // Not all: when nothing else is left to do, a size need not wait.
  EXPECT_GT(apart, again / 2);
  EXPECT_GT(doubtful, again * 3 / 4);
}

TEST(SamplingPlan, VisitsAStreamAgainWhoseFitDoesNotExplainIt) {
  // Something else ran while messages of 16 KiB were streamed first: all repetitions took half as long again.
  Target target = message_target();
  target.quantity.in_flight = kStreaming;
  target.largest = Bytes{1 << 20};
  SamplingPlan sampling_plan({target}, small_options(), {});
  const Bytes disturbed = 16_KiB;
  std::map<Bytes, int> visits;
  double settled = 0;
  for (int i = 0; i < 100; ++i) {
    const auto visit = sampling_plan.next(Seconds{100}, std::nullopt);
    if (!visit) break;
    const bool first = visits[visit->size]++ == 0;
    const double each = (100e-6 + 8e-9 * static_cast<double>(visit->size.count)) *
                        (first && visit->size == disturbed ? 1.5 : 1);
    const ProbeSample sample =
        sampling_plan.record(*visit, std::vector(static_cast<std::size_t>(visit->repetitions), each));
    if (visit->size == disturbed) settled = sample.sample.time.count();
  }
  EXPECT_GT(visits[disturbed], 1);
  EXPECT_NEAR(settled, 100e-6 + 8e-9 * 16384, 0.1e-6);
}

TEST(SamplingPlan, LooksForTheBendBetweenStartUpAndBytes) {
  // 300 us at 4 B and 8.39 ms at 1 MiB, 8 ns a byte: the line between them is up to twice the larger of
  // start-up and bytes, most at 37.5 KB, where these are equal. Nothing tells sizes of equal gain apart
  // otherwise.
  SamplingPlanOptions options = small_options();
  options.last = Bytes{1 << 20};
  std::vector<ProbeSample> ends;
  for (const auto& [size, seconds] : {std::pair{Bytes{4}, 300e-6}, std::pair{Bytes{1 << 20}, 8.39e-3}}) {
    ProbeSample sample;
    sample.quantity = message_target().quantity;
    sample.sample = {size, Seconds{seconds}, Seconds{seconds / 1000}, 20};
    ends.push_back(sample);
  }
  const auto visit = SamplingPlan({message_target()}, options, ends).next(Seconds{100}, std::nullopt);
  ASSERT_TRUE(visit);
  EXPECT_GE(visit->size, Bytes{2 << 10});
  EXPECT_LE(visit->size, Bytes{64 << 10});
  // Where a message costs the same whatever its size there is none to look for: gains of others come first.
  ends.back().sample.time = Seconds{301e-6};
  ends.back().quantity.destination = 2;
  ends.push_back(ends.front());
  ends.back().quantity.destination = 2;
  ends.push_back(ends.front());
  ends.back().sample = {Bytes{1 << 20}, Seconds{8.39e-3}, Seconds{8e-6}, 20};
  const auto other =
      SamplingPlan({message_target(2), message_target(1)}, options, ends).next(Seconds{100}, std::nullopt);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->quantity.destination, 1);
}

TEST(SamplingPlan, LooksForTheBendWhereAnOperationDepartsFromItsGuess) {
  // Two operations between 1 KiB and 1 MiB: one takes what its guess says, the other four times as long.
  std::vector<Target> targets;
  std::vector<ProbeSample> known;
  for (const int workers : {3, 4}) {
    Target target = message_target();
    target.quantity = {Subject::kOperation, AllReduce{}, Operation::kAllReduce, workers};
    targets.push_back(target);
    for (const auto& [size, seconds] :
         {std::pair{Bytes{1 << 10}, 100e-6}, std::pair{Bytes{1 << 20}, 8.5e-3}}) {
      ProbeSample sample;
      sample.quantity = target.quantity;
      const double time = workers == 4 && size == Bytes{1 << 20} ? 4 * seconds : seconds;
      sample.sample = {size, Seconds{time}, Seconds{time / 1000}, 20};
      known.push_back(sample);
    }
  }
  SamplingPlanOptions options = small_options();
  options.first = Bytes{1 << 10};
  options.last = Bytes{1 << 20};
  const auto visit = SamplingPlan(targets, options, known).next(Seconds{100}, std::nullopt);
  ASSERT_TRUE(visit);
  EXPECT_EQ(visit->quantity.workers, 4);
}

TEST(SamplingPlan, ExpectsNoByteForLessThanItsGuess) {
  // Start-up hid what bytes take at 128 KiB; it does not at 8 MiB.
  Target target = message_target();
  std::vector<ProbeSample> known;
  for (const Bytes size : {Bytes{4}, Bytes{128 << 10}}) {
    ProbeSample sample;
    sample.quantity = target.quantity;
    sample.sample = {size, Seconds{size == Bytes{4} ? 20e-3 : 20.1e-3}, Seconds{1e-5}, 20};
    known.push_back(sample);
  }
  const SamplingPlan sampling_plan({target}, small_options(), known);
  EXPECT_GT(sampling_plan.expected(0, Bytes{8 << 20}).count(), 20e-3 + 8e-9 * (8 << 20) * 0.9);
}

TEST(SamplingPlan, GoesOnFromEarlierSamples) {
  SamplingPlan first({message_target()}, small_options(), {});
  Simulation before;
  before.run(first, Seconds{1000}, 0.001);
  SamplingPlan second({message_target()}, small_options(), before.samples);
  EXPECT_TRUE(second.complete());
}

TEST(SamplingPlan, KeepsAsManyUnderWayAsASizeBeganWith) {
  // The guess of the time per byte is far too high: the next visit of the same size knows better, and still
  // must not make another quantity of it.
  Target target = message_target();
  target.quantity.in_flight = kStreaming;
  target.largest = Bytes{512 << 10};
  target.beta = SecondsPerByte{1e-6};
  SamplingPlan sampling_plan({target}, small_options(), {});
  Simulation simulation;
  simulation.run(sampling_plan, Seconds{1000}, 0.05);
  std::map<Bytes, int> under_way;
  int repeated = 0;
  for (const ProbeSample& sample : simulation.samples) {
    const auto [first, added] = under_way.emplace(sample.sample.size, sample.quantity.in_flight);
    EXPECT_EQ(first->second, sample.quantity.in_flight) << sample.sample.size.count;
    repeated += added ? 0 : 1;
  }
  EXPECT_GT(repeated, 0);
  // So does a probe that goes on from these samples.
  SamplingPlanOptions narrower = small_options();
  narrower.width = 0.002;
  SamplingPlan later({target}, narrower, simulation.samples);
  const auto visit = later.next(Seconds{100}, std::nullopt);
  ASSERT_TRUE(visit);
  ASSERT_TRUE(under_way.contains(visit->size));
  EXPECT_EQ(visit->quantity.in_flight, under_way[visit->size]);
}

TEST(SamplingPlan, BeginsAStreamAtTheLargestSizeThatFitsAVisit) {
  // 12 ns a byte: ten messages of 512 KiB take 63 ms, three such repetitions and a warm-up 0.26 s, which is
  // within a twentieth of 8 s; a hundred times slower only small ones are.
  Target target = message_target();
  target.quantity.in_flight = kStreaming;
  target.smallest = Bytes{64};
  target.largest = Bytes{512 << 10};
  target.startup = Seconds{50e-6};
  target.beta = SecondsPerByte{12e-9};
  SamplingPlanOptions options = small_options();
  options.budget = Seconds{8};
  SamplingPlan sampling_plan({target}, options, {});
  const auto first = sampling_plan.next(Seconds{100}, std::nullopt);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size, Bytes{512 << 10});
  // Where that does not fit any more, a smaller one does.
  const auto later = sampling_plan.next(Seconds{0.1}, std::nullopt);
  ASSERT_TRUE(later);
  EXPECT_LT(later->size, Bytes{512 << 10});
  Simulation simulation;
  simulation.run(sampling_plan, Seconds{1000}, 0.001);
  for (const ProbeSample& sample : simulation.samples) EXPECT_GE(sample.sample.size, target.smallest);
  target.beta = SecondsPerByte{1.2e-6};
  SamplingPlan slow({target}, options, {});
  EXPECT_LT(slow.next(Seconds{100}, std::nullopt)->size, Bytes{64 << 10});
}

TEST(SamplingPlan, WarmsEveryFirstStreamOfASizeUp) {
  Target target = message_target();
  target.quantity.in_flight = kStreaming;
  target.largest = Bytes{512 << 10};
  SamplingPlan sampling_plan({target}, small_options(), {});
  std::set<Bytes> visited;
  for (int i = 0; i < 8; ++i) {
    const auto visit = sampling_plan.next(Seconds{100}, std::nullopt);
    ASSERT_TRUE(visit);
    EXPECT_EQ(visit->first, visited.insert(visit->size).second) << visit->size.count;
    const double each = truth(visit->size);
    sampling_plan.record(*visit, std::vector{each, 1.2 * each});
  }
  EXPECT_GT(visited.size(), 2U);
}

TEST(SamplingPlan, LooksBetweenTheEndsOfAStreamWhoseMiddleIsOpen) {
  // Handing over takes 100 us, bytes of 512 KiB 6.3 ms. A message of some KiB takes the longer of the two
  // where hosts work on several at once, and their sum where processors have no time to.
  Target target = message_target();
  target.quantity.subject = Subject::kOperation;
  target.quantity.workers = 4;
  target.quantity.in_flight = kStreaming;
  target.smallest = Bytes{64};
  target.largest = Bytes{512 << 10};
  target.startup = Seconds{100e-6};
  target.beta = SecondsPerByte{12e-9};
  SamplingPlanOptions options = small_options();
  options.budget = Seconds{8};
  SamplingPlan sampling_plan({target}, options, {});
  std::vector<Bytes> visited;
  for (int i = 0; i < 3; ++i) {
    const auto visit = sampling_plan.next(Seconds{100}, std::nullopt);
    ASSERT_TRUE(visit);
    visited.push_back(visit->size);
    const double each = 100e-6 + 12e-9 * static_cast<double>(visit->size.count);
    sampling_plan.record(*visit, std::vector(static_cast<std::size_t>(visit->repetitions), each));
  }
  EXPECT_EQ(visited[0], Bytes{512 << 10});
  EXPECT_LE(visited[1], Bytes{1 << 10});
  EXPECT_GE(visited[2], Bytes{2 << 10});
  EXPECT_LE(visited[2], Bytes{32 << 10});
}

}  // namespace
}  // namespace commtune::probes
