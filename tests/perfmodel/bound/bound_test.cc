#include "perfmodel/bound/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "perfmodel/bound/preemptive_bound.h"
#include "perfmodel/cost/topology.h"
#include "perfmodel/fit/curve_ops.h"
#include "tests/perfmodel/random_steps.h"

namespace commtune {
namespace {

TEST(Jackson, PreemptsForTheLongestTail) {
  // Job 0: head 0, body 4, tail 1. Job 1: head 1, body 2, tail 5. 0 runs 0..1, 1 runs 1..3 (3 + 5 = 8), 0
  // ends at 6 (6 + 1 = 7).
  EXPECT_DOUBLE_EQ(jackson({0, 1}, {4, 2}, {1, 5}), 8);
}

TEST(Jackson, WaitsForWhatIsNotReady) {
  EXPECT_DOUBLE_EQ(jackson({3, 10}, {1, 1}, {0, 2}), 13);
  EXPECT_DOUBLE_EQ(jackson({}, {}, {}), 0);
}

/// max over all sets A of min head + sum of bodies + min tail: what the schedule's length must equal (Carlier
/// 1982).
double by_subsets(const std::vector<double>& head, const std::vector<double>& body,
                  const std::vector<double>& tail) {
  double longest = 0;
  for (unsigned set = 1; set < (1U << head.size()); ++set) {
    double first = std::numeric_limits<double>::infinity(), last = first, total = 0;
    for (std::size_t i = 0; i < head.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      first = std::min(first, head[i]);
      last = std::min(last, tail[i]);
      total += body[i];
    }
    longest = std::max(longest, first + total + last);
  }
  return longest;
}

TEST(Jackson, EqualsTheBestSubsetBound) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t n = 1 + random() % 8;
    std::vector<double> head(n), body(n), tail(n);
    for (std::size_t i = 0; i < n; ++i) {
      head[i] = static_cast<double>(random() % 20);
      body[i] = static_cast<double>(random() % 10);
      tail[i] = static_cast<double>(random() % 20);
    }
    ASSERT_DOUBLE_EQ(jackson(head, body, tail), by_subsets(head, body, tail));
  }
}

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

Profile random_profile(std::mt19937_64& random, std::size_t tensors) {
  Profile profile;
  for (std::size_t i = 0; i < tensors; ++i) {
    profile.layers.push_back({"l",
                              Seconds{uniform(random, 0, 2)},
                              Seconds{uniform(random, 0, 3)},
                              Seconds{uniform(random, 0, 0.3)},
                              {{"t", Bytes{4 * (1 + random() % 50)}}},
                              0});
  }
  return profile;
}

StageCost random_stage(std::mt19937_64& random) {
  const double alpha = uniform(random, 0, 1), beta = uniform(random, 0, 0.03), part = uniform(random, 0, 1);
  std::vector<CurvePiece> alone{{0_B, Seconds{alpha}, {beta}}}, kept{{0_B, Seconds{alpha * part}, {beta}}};
  if (random() % 2 == 0) {  // a protocol switch at 100 B to a smaller time per byte
    const double flatter = beta * uniform(random, 0.3, 1),
                 jump = (beta - flatter) * 100 + uniform(random, 0, 0.2);
    alone.push_back({100_B, Seconds{alpha + jump}, {flatter}});
    kept.push_back({100_B, Seconds{alpha * part + jump}, {flatter}});
  }
  if (random() % 3 == 0) {  // the next message is handed over while the last one's bytes leave
    return {Curve{alone},
            upper(Curve{Seconds{alpha * part}, SecondsPerByte{0}}, Curve{Seconds{0}, alone.back().beta})};
  }
  return {Curve{alone}, Curve{kept}};
}

RoadCost random_cost(std::mt19937_64& random) {
  RoadCost cost;
  cost.reduce = random_stage(random);
  cost.distribute = random_stage(random);
  cost.both = random_stage(random);
  cost.shared_channel = random() % 3 != 0;
  cost.through_servers = !cost.shared_channel || random() % 2 == 0;
  cost.rounds = {1 + static_cast<int>(random() % 3), 1 + static_cast<int>(random() % 3)};
  if (random() % 2 == 0) cost.rounds.last = uniform(random, 0, 1);
  if (!cost.shared_channel) cost.rounds = {1, 1};
  if (random() % 2 == 0) cost.head_of_line = Seconds{uniform(random, 0, 2)};
  cost.interference = random() % 2 == 0 ? 0 : uniform(random, 0, 0.5);
  cost.straggling = Seconds{random() % 2 == 0 ? 0 : 0.1};
  if (cost.shared_channel && random() % 3 == 0)
    cost.skew = {{uniform(random, 0, 0.5), Seconds{uniform(random, 0, 0.5)}}, Seconds{uniform(random, 0, 2)}};
  return cost;
}

/// In half of the cases traffic is slowed by compute.
JobSlowdown random_slowdown(std::mt19937_64& random) {
  return {uniform(random, 0.5, 2), random() % 2 == 0 ? 0 : uniform(random, 0, 1.5), Seconds{0.1}};
}

/// Of what the simulator says, which is no less than what is true of real workers.
double simulated_bound(const Workload& work, const RoadCost& cost) {
  const LowerBounds bounds = lower_bounds(work, cost);
  if (cost.straggling >= work.lateness) {
    EXPECT_GE(bounds.simulated.count(), bounds.expected.count() * (1 - 1e-12));
  }
  return bounds.simulated.count();
}

/// Calls `visit` with every way to divide `tensors` into ordered messages.
template <typename Visit>
void every_ordered_partition(std::size_t tensors, const Visit& visit) {
  // Number each tensor with its message's place; every surjective numbering is one ordered partition.
  for (std::size_t groups = 1; groups <= tensors; ++groups) {
    std::vector<std::size_t> place(tensors, 0);
    while (true) {
      std::vector<bool> used(groups);
      for (const std::size_t p : place) used[p] = true;
      if (std::all_of(used.begin(), used.end(), [](bool b) { return b; })) visit(groups, place);
      std::size_t digit = 0;
      while (digit < tensors && ++place[digit] == groups) place[digit++] = 0;
      if (digit == tensors) break;
    }
  }
}

std::vector<Message> messages_of(const Profile& profile, std::size_t groups,
                                 const std::vector<std::size_t>& place) {
  std::vector<Message> messages(groups);
  for (std::size_t t = 0; t < place.size(); ++t) {
    messages[place[t]].pieces.push_back({static_cast<TensorId>(t), 0_B, profile.layers[t].tensors[0].bytes});
  }
  return messages;
}

std::vector<std::vector<Step>> every_sequence(std::size_t messages) {
  std::vector<std::size_t> order(2 * messages);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i / 2;
  std::vector<std::vector<Step>> all;
  do {
    std::vector<Step> sequence;
    std::vector<bool> seen(messages);
    for (const std::size_t m : order) {
      sequence.push_back({static_cast<std::uint32_t>(m), seen[m] ? Stage::kDistribute : Stage::kReduce});
      seen[m] = true;
    }
    all.push_back(std::move(sequence));
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

TEST(LowerBound, NoPlanOfASmallJobLiesBelowIt) {
  std::mt19937_64 random(42);
  double tightest = std::numeric_limits<double>::infinity();
  std::vector<std::vector<std::vector<Step>>> sequences{{}};
  for (std::size_t n = 1; n <= 3; ++n) sequences.push_back(every_sequence(n));
  for (int round = 0; round < 2000; ++round) {
    const Profile profile = random_profile(random, 1 + random() % 3);
    const Workload work(profile, random_slowdown(random));
    const RoadCost cost = random_cost(random);
    Simulator simulator(work);
    const double bound = simulated_bound(work, cost);
    double best = std::numeric_limits<double>::infinity();
    every_ordered_partition(profile.layers.size(),
                            [&](std::size_t groups, const std::vector<std::size_t>& place) {
                              Plan plan;
                              plan.barrier = Barrier::kPerLayer;
                              plan.messages = messages_of(profile, groups, place);
                              for (const Bytes credit : {0_B, 1_MiB}) {
                                plan.credit = credit;
                                plan.sequence.clear();
                                best = std::min(best, simulator.run(plan, cost).iteration.count());
                                if (cost.through_servers) continue;
                                for (const auto& sequence : sequences[groups]) {
                                  plan.sequence = sequence;
                                  best = std::min(best, simulator.run(plan, cost).iteration.count());
                                }
                              }
                            });
    ASSERT_GE(best, bound * (1 - 1e-12)) << "round " << round;
    tightest = std::min(tightest, best / bound);
  }
  EXPECT_LT(tightest, 1 + 5e-4) << "a bound that is never reached is too weak";
}

TEST(LowerBound, NoPlanWithPullsOfItsOwnLiesBelowIt) {
  std::mt19937_64 random(47);
  double tightest = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 600; ++round) {
    const Profile profile = random_profile(random, 1 + random() % 3);
    const Workload work(profile, random_slowdown(random));
    RoadCost cost = random_cost(random);
    cost.through_servers = true;
    cost.shared_channel = false;
    cost.rounds = {1, 1};
    Simulator simulator(work);
    double best = std::numeric_limits<double>::infinity();
    const std::size_t tensors = profile.layers.size();
    every_ordered_partition(tensors, [&](std::size_t groups, const std::vector<std::size_t>& place) {
      Plan plan;
      plan.road = ParameterServer{};
      plan.barrier = Barrier::kPerLayer;
      plan.messages = messages_of(profile, groups, place);
      every_ordered_partition(tensors, [&](std::size_t pulls, const std::vector<std::size_t>& pulled) {
        plan.pulls = messages_of(profile, pulls, pulled);
        for (int order = 0; order < 3; ++order) {
          plan.sequence = tests::random_steps(random, plan);
          plan.credit = order == 0 ? 0_B : 1_MiB;
          best = std::min(best, simulator.run(plan, cost).iteration.count());
        }
      });
    });
    const double bound = simulated_bound(work, cost);
    ASSERT_GE(best, bound * (1 - 1e-12)) << "round " << round;
    tightest = std::min(tightest, best / bound);
  }
  EXPECT_LT(tightest, 1 + 5e-3) << "a bound that is never reached is too weak";
}

TEST(LowerBound, NoPartitionOrPriorityLiesBelowIt) {
  std::mt19937_64 random(43);
  for (int round = 0; round < 3000; ++round) {
    const Profile profile = random_profile(random, 1 + random() % 6);
    const Workload work(profile, random_slowdown(random));
    const RoadCost cost = random_cost(random);
    Plan plan;
    plan.barrier = Barrier::kPerLayer;
    plan.order = Order::kPriority;
    const std::uint64_t piece = 4 * (1 + random() % 30);
    for (TensorId t = 0; t < profile.layers.size(); ++t) {
      const std::uint64_t bytes = profile.layers[t].tensors[0].bytes.count;
      for (std::uint64_t offset = 0; offset < bytes; offset += piece) {
        plan.priority.push_back(static_cast<std::int32_t>(plan.messages.size()));
        plan.messages.push_back({{{t, Bytes{offset}, Bytes{std::min(piece, bytes - offset)}}}});
      }
    }
    plan.credit = Bytes{random() % 3 * piece};
    ASSERT_GE(simulate(work, plan, cost).iteration.count(), simulated_bound(work, cost) * (1 - 1e-12))
        << "round " << round;
  }
}

/// Costs whose start-ups are what a plan has to think about: as long as a layer or two.
RoadCost cost_of_start_ups(std::mt19937_64& random) {
  const auto stage = [&] {
    const double overhead = uniform(random, 0.2, 3), beta = uniform(random, 0, 0.05);
    return StageCost{Curve{Seconds{overhead + uniform(random, 0, 1)}, SecondsPerByte{beta}},
                     Curve{Seconds{overhead}, SecondsPerByte{beta}}};
  };
  RoadCost cost;
  cost.reduce = stage();
  cost.distribute = stage();
  cost.both = stage();
  cost.may_part = false;
  cost.rounds = {1, 0};
  return cost;
}

TEST(LowerBound, IsNearTheBestPlanWhereStartUpsCount) {
  // Every way to fuse and order up to five tensors, which are as large as the bound's cells: it takes them
  // for divisible, and still is not far off.
  std::mt19937_64 random(45);
  std::vector<double> gaps;
  for (int round = 0; round < 600; ++round) {
    const Profile profile = random_profile(random, 2 + random() % 4);
    const Workload work(profile, random_slowdown(random));
    const RoadCost cost = cost_of_start_ups(random);
    Simulator simulator(work);
    double best = std::numeric_limits<double>::infinity();
    every_ordered_partition(profile.layers.size(),
                            [&](std::size_t groups, const std::vector<std::size_t>& place) {
                              Plan plan;
                              plan.barrier = Barrier::kPerLayer;
                              plan.messages = messages_of(profile, groups, place);
                              plan.credit = 1_MiB;
                              best = std::min(best, simulator.run(plan, cost).iteration.count());
                            });
    const double bound = lower_bound(work, cost).count();
    ASSERT_GE(best, bound * (1 - 1e-12)) << "round " << round;
    gaps.push_back(best / bound - 1);
  }
  std::sort(gaps.begin(), gaps.end());
  EXPECT_LT(gaps[gaps.size() / 2], 0.03);
  EXPECT_LT(gaps[gaps.size() * 95 / 100], 0.15);
}

TEST(PreemptiveMessages, ReachTheBound) {
  // Without latencies nothing but their own choice keeps messages that overtake each other from the bound.
  std::mt19937_64 random(47);
  for (int round = 0; round < 500; ++round) {
    Profile profile = random_profile(random, 1 + random() % 12);
    for (Layer& layer : profile.layers) layer.tensors[0].bytes = Bytes{layer.tensors[0].bytes.count * 4096};
    const Workload work(profile);
    RoadCost cost;
    const Curve curve{Seconds{uniform(random, 0, 0.5)}, SecondsPerByte{uniform(random, 0, 0.05) / 4096}};
    cost.both = {curve, curve};
    cost.reduce = cost.distribute = {times(curve, 0.5), times(curve, 0.5)};
    cost.through_servers = true;
    const std::vector<double> ends = preemptive_messages(work, preemptive_channel(cost, 0), work.compute());
    Plan plan;
    plan.barrier = Barrier::kPerLayer;
    plan.order = Order::kPriority;
    plan.credit = Bytes{work.total_bytes};
    std::uint64_t before = 0, done = 0;
    TensorId tensor = 0;
    for (const double end : ends) {
      plan.priority.push_back(static_cast<std::int32_t>(plan.messages.size()));
      plan.messages.emplace_back();
      for (const auto until = static_cast<std::uint64_t>(end); done < until;) {
        const std::uint64_t size = profile.layers[tensor].tensors[0].bytes.count;
        const std::uint64_t length = std::min(until, before + size) - done;
        plan.messages.back().pieces.push_back({tensor, Bytes{done - before}, Bytes{length}});
        done += length;
        if (done < before + size) continue;
        before += size;
        ++tensor;
      }
    }
    ASSERT_EQ(done, work.total_bytes) << "round " << round;
    const double bound = lower_bound(work, cost).count();
    const double reached = simulate(work, plan, cost).iteration.count();
    ASSERT_GE(reached, bound * (1 - 1e-12)) << "round " << round;
    ASSERT_LE(reached, bound * 1.002) << "round " << round;
  }
}

/// A plan that cuts tensors anywhere and fuses what comes to lie together, in the order in which gradients
/// appear but for some that are moved.
Plan random_plan(std::mt19937_64& random, const Profile& profile) {
  std::vector<Piece> pieces;
  for (auto t = static_cast<TensorId>(profile.layers.size()); t-- > 0;) {
    const std::uint64_t bytes = profile.layers[t].tensors[0].bytes.count;
    for (std::uint64_t offset = 0; offset < bytes;) {
      const std::uint64_t left = bytes - offset;
      const std::uint64_t length = random() % 2 == 0 ? left : std::min(left, 4 * (1 + random() % (left / 4)));
      pieces.push_back({t, Bytes{offset}, Bytes{length}});
      offset += length;
    }
  }
  for (std::size_t moves = random() % 4; moves > 0; --moves) {
    std::swap(pieces[random() % pieces.size()], pieces[random() % pieces.size()]);
  }
  Plan plan;
  plan.barrier = Barrier::kPerLayer;
  const std::uint64_t fuse = random() % 4;
  for (const Piece& piece : pieces) {
    if (plan.messages.empty() || random() % (fuse + 1) == 0) plan.messages.emplace_back();
    plan.messages.back().pieces.push_back(piece);
  }
  for (std::size_t i = 0; i < plan.messages.size(); ++i)
    plan.priority.push_back(static_cast<std::int32_t>(i));
  std::shuffle(plan.priority.begin(), plan.priority.end(), random);
  plan.order = random() % 3 == 0 ? Order::kPriority : Order::kList;
  plan.credit = Bytes{random() % 3 * 100};
  return plan;
}

TEST(LowerBound, NoRandomPlanLiesBelowIt) {
  std::mt19937_64 random(46);
  for (int round = 0; round < 1000; ++round) {
    const Profile profile = random_profile(random, 1 + random() % 20);
    const Workload work(profile, random_slowdown(random));
    const RoadCost cost = random() % 2 == 0 ? cost_of_start_ups(random) : random_cost(random);
    Simulator simulator(work);
    const double bound = simulated_bound(work, cost);
    for (int plan = 0; plan < 20; ++plan) {
      Plan candidate = random_plan(random, profile);
      if (cost.rounds.distribute == 0) candidate.order = Order::kList;
      ASSERT_GE(simulator.run(candidate, cost).iteration.count(), bound * (1 - 1e-12)) << "round " << round;
    }
  }
}

TEST(LowerBound, IsComputeWhereNothingTravels) {
  std::mt19937_64 random(44);
  const Workload work{random_profile(random, 4)};
  EXPECT_DOUBLE_EQ(lower_bound(work, RoadCost{}).count(), work.compute());
}

TEST(LowerBound, CountsBytesWhereStartUpsHideBehindThem) {
  // One layer: f = b = 1 s, then 100 B at 0.01 s, in messages that take 0.2 s at least: 3 s, and no less
  // because 20 B cost no more than none.
  Profile profile;
  profile.layers = {{"a", Seconds{1}, Seconds{1}, Seconds{0}, {{"w", 100_B}}, 0}};
  RoadCost cost;
  cost.both.alone = Curve{Seconds{0.2}, SecondsPerByte{0.01}};
  cost.both.occupancy =
      upper(Curve{Seconds{0.2}, SecondsPerByte{0}}, Curve{Seconds{0}, SecondsPerByte{0.01}});
  cost.may_part = false;
  const double bound = lower_bound(Workload{profile}, cost).count();
  EXPECT_GE(bound, 3);
  EXPECT_LE(bound, 3.2);
}

TEST(LowerBound, CountsTheSlowDownOfCompute) {
  // One layer: f = b = 1 s, 100 B at 0.01 s: 1 s on the wire, which cannot overlap with its own layer: 3 s.
  // With a second layer without gradients the channel may overlap, and kappa 1 turns 1 s on the wire into 0.5
  // s lost.
  Profile profile;
  profile.layers = {{"a", Seconds{1}, Seconds{1}, Seconds{0}, {{"w", 100_B}}, 0}};
  RoadCost cost;
  cost.both.alone = cost.both.occupancy = Curve{Seconds{0}, SecondsPerByte{0.01}};
  cost.reduce.alone = cost.reduce.occupancy = cost.distribute.alone = cost.distribute.occupancy =
      Curve{Seconds{0}, SecondsPerByte{0.005}};
  cost.interference = 1;
  EXPECT_DOUBLE_EQ(lower_bound(Workload{profile}, cost).count(), 3);
  profile.layers.insert(profile.layers.begin(), {"b", Seconds{1}, Seconds{1}, Seconds{0}, {}, 0});
  EXPECT_DOUBLE_EQ(lower_bound(Workload{profile}, cost).count(), 4.5);
}

/// Layer "a" computes 2 s and has 4 B; "b" computes nothing and has 100 B, which are there at once.
Profile late_and_large() {
  Profile profile;
  profile.layers = {{"a", Seconds{1}, Seconds{1}, Seconds{0}, {{"w", 4_B}}, 0},
                    {"b", Seconds{0}, Seconds{0}, Seconds{0}, {{"w", 100_B}}, 0}};
  return profile;
}

RoadCost cost_of_bytes(double seconds_per_byte) {
  RoadCost cost;
  cost.both.alone = cost.both.occupancy = Curve{Seconds{0}, SecondsPerByte{seconds_per_byte}};
  cost.may_part = false;
  return cost;
}

TEST(LowerBound, CountsNoLatenessWhereTheNetworkIsWaitedFor) {
  // At 0.1 s a byte the channel is busy for 10.4 s from the start on. A worker whose 2 s of compute take a
  // second longer has its 4 B ready in time all the same.
  const Workload work(late_and_large(), {1, 0, Seconds{1}});
  RoadCost cost = cost_of_bytes(0.1);
  cost.straggling = Seconds{1.2};
  EXPECT_NEAR(lower_bounds(work, cost).expected.count(), 10.4, 1e-9);
  EXPECT_NEAR(lower_bounds(work, cost).simulated.count(), 11.6, 1e-9);
}

TEST(LowerBound, CountsLatenessWhereComputeIsWaitedFor) {
  const Workload work(late_and_large(), {1, 0, Seconds{1}});
  EXPECT_NEAR(lower_bound(work, cost_of_bytes(1e-9)).count(), 3, 1e-6);
  EXPECT_NEAR(lower_bound(work, cost_of_bytes(0.025)).count(), 3, 1e-6) << "2.6 s of traffic: absorbed, too";
}

TEST(LowerBound, CountsNoLatenessOfLayersThatNobodyWaitsFor) {
  // What is computed before the first layer with gradients may catch up before they are back.
  Profile frozen = late_and_large();
  frozen.layers.insert(frozen.layers.begin(), {"frozen", Seconds{3}, Seconds{0}, Seconds{0}, {}, 0});
  EXPECT_DOUBLE_EQ(lower_bound(Workload(frozen, {1, 0, Seconds{1}}), cost_of_bytes(0)).count(), 5);
  frozen.layers[0].forward = Seconds{0};
  EXPECT_DOUBLE_EQ(lower_bound(Workload(frozen, {1, 0, Seconds{1}}), cost_of_bytes(0)).count(), 3);
  Profile nothing = late_and_large();
  for (Layer& layer : nothing.layers) layer.tensors.clear();
  EXPECT_DOUBLE_EQ(lower_bound(Workload(nothing, {1, 0, Seconds{1}}), cost_of_bytes(0)).count(), 2);
}

/// Workers of which each computes for a time of its own in every iteration, and a channel that takes a plan's
/// messages in their order once all workers have what they carry.
class LateWorkers {
 public:
  LateWorkers(const Workload& work, const RoadCost& cost, int workers, double deviation)
      : work_(work), cost_(cost), workers_(workers), deviation_(deviation / work.compute()) {}

  /// Mean iteration of a plan with a barrier per layer; the same lateness for every plan.
  double mean_iteration(const Plan& plan, int iterations) const {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> start(static_cast<std::size_t>(workers_), 0.0), slow(start.size(), 1.0);
    double channel = 0;
    for (int i = 0; i < iterations; ++i) {
      std::vector<double> back(work_.layers(), 0.0);
      for (const Message& message : plan.messages) channel = sent(message, start, slow, channel, back);
      // What is computed between one exchange and the next is late as a whole.
      for (std::size_t w = 0; w < start.size(); ++w) {
        const double backward_end = start[w] + slow[w] * work_.total_backward;
        slow[w] = std::max(0.0, 1 + deviation_ * normal(random));
        start[w] = forward_end(backward_end, slow[w], back);
      }
    }
    return *std::ranges::max_element(start) / iterations;
  }

 private:
  double sent(const Message& message, const std::vector<double>& start, const std::vector<double>& slow,
              double channel, std::vector<double>& back) const {
    std::uint64_t bytes = 0;
    for (const Piece& piece : message.pieces) {
      bytes += piece.length.count;
      for (std::size_t w = 0; w < start.size(); ++w) {
        channel = std::max(channel, start[w] + slow[w] * work_.ready[work_.tensors[piece.tensor].layer]);
      }
    }
    channel += cost_.both.alone(Bytes{bytes}).count();
    for (const Piece& piece : message.pieces) back[work_.tensors[piece.tensor].layer] = channel;
    return channel;
  }

  double forward_end(double now, double slow, const std::vector<double>& back) const {
    for (std::size_t layer = 0; layer < work_.layers(); ++layer) {
      now = std::max(now, back[layer]) + slow * (work_.update[layer] + work_.forward[layer]);
    }
    return now;
  }

  const Workload& work_;
  const RoadCost& cost_;
  const int workers_;
  const double deviation_;  ///< of a worker's compute, as a part of it
};

TEST(LowerBound, IsReachedByWorkersWhoseLatenessTheNetworkHides) {
  // 15 B of the 100, until 1.5 s; the 4 B that are ready at about 1 s; the rest until 10.4 s, whoever is
  // late.
  const Workload work(late_and_large(), {1, 0, Seconds{0.1 * least_expected_maximum(4)}});
  RoadCost cost = cost_of_bytes(0.1);
  cost.straggling = work.lateness;
  Plan plan;
  plan.messages = {{{{1, 0_B, 15_B}}}, {{{0, 0_B, 4_B}}}, {{{1, 15_B, 85_B}}}};
  const LowerBounds bounds = lower_bounds(work, cost);
  const double mean = LateWorkers(work, cost, 4, 0.1).mean_iteration(plan, 500);
  EXPECT_NEAR(mean, bounds.expected.count(), 1e-3);
  EXPECT_LT(mean, (bounds.simulated - 0.9 * cost.straggling).count())
      << "with the lateness it would be no bound";
}

TEST(LowerBound, NoPlanOfWorkersThatAreLateByChanceLiesBelowIt) {
  std::mt19937_64 random(48);
  constexpr int kIterations = 1500;
  int with_all_lateness_too_high = 0, by_compute = 0;
  for (int round = 0; round < 80; ++round) {
    const Profile profile = random_profile(random, 1 + random() % 3);
    const int workers = 2 + static_cast<int>(random() % 6);
    const Workload plain(profile);
    const double deviation = 0.15 * plain.compute(),
                 mean_of_last = deviation * least_expected_maximum(workers);
    const Workload work(profile, {1, 0, Seconds{mean_of_last}});
    RoadCost cost = cost_of_bytes(0.3 * std::pow(uniform(random, 0, 1), 2));
    cost.both.alone = cost.both.occupancy =
        Curve{Seconds{uniform(random, 0, 0.3)}, SecondsPerByte{cost.both.alone.least_beta()}};
    cost.straggling = Seconds{mean_of_last};
    const LateWorkers late(work, cost, workers, deviation);
    double best = std::numeric_limits<double>::infinity();
    every_ordered_partition(profile.layers.size(),
                            [&](std::size_t groups, const std::vector<std::size_t>& place) {
                              Plan plan;
                              plan.messages = messages_of(profile, groups, place);
                              best = std::min(best, late.mean_iteration(plan, kIterations));
                            });
    const LowerBounds bounds = lower_bounds(work, cost);
    // Three standard errors of a mean of so many iterations.
    ASSERT_GE(best, bounds.expected.count() - 3 * deviation / std::sqrt(kIterations)) << "round " << round;
    by_compute += best < bounds.expected.count() * 1.02 && bounds.expected.count() > work.compute() ? 1 : 0;
    with_all_lateness_too_high += best < bounds.simulated.count() - 0.1 * mean_of_last ? 1 : 0;
  }
  EXPECT_GT(with_all_lateness_too_high, 0) << "some job should absorb what its workers are late";
  EXPECT_GT(by_compute, 0) << "and some should not";
}

}  // namespace
}  // namespace commtune
