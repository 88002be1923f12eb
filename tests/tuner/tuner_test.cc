#include "tuner/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "api/view/answer_json.h"
#include "perfmodel/base/error.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/shipped_profiles.h"
#include "perfmodel/simulate/simulate.h"
#include "tests/tuner/testbed.h"
#include "tuner/cluster_draws.h"
#include "tuner/doubt.h"
#include "tuner/methods/method.h"

namespace commtune::tuner {
namespace {

using api::to_json;

Answer small_answer(const TuneOptions& options = {}) {
  return tune(*shipped_profile("resnet50"), made_cluster(4, 200e-6, 8e-9), options);
}

TEST(Tune, RanksEveryMethodAndItsOwnChoiceBestFirst) {
  const Answer answer = small_answer();
  std::set<std::string> names;
  for (const Entry& entry : answer.ranking) names.insert(entry.method);
  for (const Method& method : methods()) EXPECT_TRUE(names.contains(std::string(method.name))) << method.name;
  EXPECT_TRUE(names.contains("joint"));
  for (std::size_t i = 1; i < answer.ranking.size(); ++i) {
    EXPECT_LE(answer.ranking[i - 1].prediction.iteration, answer.ranking[i].prediction.iteration);
  }
  EXPECT_EQ(answer.workers, 4);
}

TEST(Tune, PlansHaveThePaceOfTheLinksThatTheyWerePricedOn) {
  for (const Entry& entry : small_answer().ranking) EXPECT_NEAR(entry.plan.pace, 1 / 8e-9, 1) << entry.method;
}

TEST(Tune, SystemsThatHandOutPiecesWholeAreRankedOnServersThatTakeThemSo) {
  TuneOptions options;
  options.workers = 4;
  options.draws = 0;
  const Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  const Answer answer = tune(*shipped_profile("vgg16"), cluster, options);
  const auto assignment_of = [&](std::string_view method) {
    return std::get<ParameterServer>(entry_of(answer, method).plan.road).assignment;
  };
  for (const char* method : {"bsp-ps", "wfbp-ps", "bytescheduler-ps", "byteps"})
    EXPECT_EQ(assignment_of(method), Assignment::kHashed) << method;
  EXPECT_EQ(assignment_of("ipart"), Assignment::kEven);
  // One slice at a time keeps one server busy, while all workers wait.
  EXPECT_EQ(assignment_of("p3"), Assignment::kEven);
  // Of VGG-16 one layer has three quarters of the bytes, and the hash knows nothing of that.
  EXPECT_GT(entry_of(answer, "byteps").server_imbalance, 1.01);
  EXPECT_DOUBLE_EQ(entry_of(answer, "ipart").server_imbalance, 1);
  const auto bound_of = [&](const Road& road) {
    return std::ranges::count(answer.bounds, road, &RoadBound::road);
  };
  EXPECT_EQ(bound_of(answer.ranking.front().plan.road), 1) << "that of the fastest plan's road is told";
  options.roads = {AllReduce{}, ParameterServer{4}};
  for (const Entry& entry : tune(*shipped_profile("vgg16"), cluster, options).ranking)
    EXPECT_NE(std::ranges::find(options.roads, entry.plan.road), options.roads.end())
        << "no others than those named";
}

/// What a method takes on the best of all roads that suit it, tuned on each.
Seconds tuned_on_every_road(const Method& method, const Planning& job) {
  Seconds fastest = kNoLimit;
  const bool whole = method.servers == Assignment::kHashed;
  for (const std::vector<RoadOption>* options : {&job.roads, &job.whole}) {
    for (const RoadOption& option : *options) {
      if (architecture_of(option.road) != method.architecture) continue;
      if (whole && taking_messages_whole(option.road)) continue;
      const Plan plan = method.build(job, option);
      fastest = std::min(fastest, simulate(job.work, plan, option.cost).iteration);
    }
  }
  return fastest;
}

TEST(Tune, TunesAMethodWhereItIsFastest) {
  for (const char* model : {"resnet50", "vgg16", "bert_base"}) {
    const Profile profile = *shipped_profile(model);
    for (const double alpha : {5e-6, 50e-6, 500e-6}) {
      TuneOptions options;
      options.workers = 8;
      options.draws = 0;
      const Cluster cluster = made_cluster(8, alpha, 1e-9);
      const Answer answer = tune(profile, cluster, options);
      Planning job(profile, cluster, 8, roads_for(cluster, 8, {}));
      job.price_whole_messages(cluster);
      for (const Method& method : methods()) {
        if (method.untuned == nullptr) continue;
        const Seconds time = entry_of(answer, method.name).prediction.iteration;
        EXPECT_LE(time, tuned_on_every_road(method, job) * (1 + kIndifferent))
            << model << " " << alpha << " " << method.name;
      }
    }
  }
}

TEST(Tune, AllPlansHaveTheBarrierOfTheProgramThatTrains) {
  const Profile profile = *shipped_profile("resnet50");
  const Cluster cluster = made_cluster(8, 50e-6, 4e-9);
  const Answer as_asked = tune(profile, cluster, {});
  for (const Barrier barrier : {Barrier::kFull, Barrier::kPerLayer}) {
    TuneOptions options;
    options.barrier = barrier;
    const Answer answer = tune(profile, cluster, options);
    const Entry& joint = entry_of(answer, "joint");
    for (const Entry& entry : answer.ranking) {
      ASSERT_EQ(entry.plan.barrier, barrier) << entry.method;
      ASSERT_NO_THROW(check(entry.plan, profile));
      EXPECT_EQ(entry.prediction.iteration,
                simulate(Workload(profile), entry.plan, road_cost(entry.plan.road, cluster, 8)).iteration)
          << entry.method;
      EXPECT_LE(joint.prediction.iteration, entry.prediction.iteration) << entry.method;
      EXPECT_GE(entry.prediction.iteration, answer.bound * (1 - 1e-12)) << entry.method;
    }
    // Here it costs something to wait for all gradients, where a plan hides some behind the forward pass.
    const bool full = barrier == Barrier::kFull;
    for (const char* const hides : {"p3", "joint"}) {
      const Seconds by_itself = entry_of(as_asked, hides).prediction.iteration;
      EXPECT_EQ(entry_of(answer, hides).prediction.iteration > by_itself, full) << hides;
    }
    EXPECT_EQ(entry_of(answer, "mg-wfbp").prediction.iteration,
              entry_of(as_asked, "mg-wfbp").prediction.iteration)
        << "its last message has the first layer's gradients, which both wait for";
  }
}

TEST(Tune, NothingInTheRankingIsBelowTheBoundOrBetterThanJoint) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 60; ++round) {
    const Profile profile = made_profile(random, 40);
    const double alpha = std::pow(10, -5 + 2.5 * (static_cast<double>(random() % 100) / 100));
    TuneOptions options;
    options.workers = 1 + static_cast<int>(random() % 16);
    options.limits.dedicated_servers = static_cast<int>(random() % 3);
    const Answer answer =
        tune(profile, made_cluster(8, alpha, 1e-9 * static_cast<double>(1 + random() % 8)), options);
    Seconds joint{};
    for (const Entry& entry : answer.ranking) {
      ASSERT_NO_THROW(check(entry.plan, profile));
      ASSERT_GE(entry.prediction.iteration, answer.bound * (1 - 1e-12)) << entry.method;
      ASSERT_GE(entry.prediction.iteration, entry.bound * (1 - 1e-12)) << entry.method;
      ASSERT_GE(entry.gap, -1e-12);
      if (entry.method == "joint") joint = entry.prediction.iteration;
    }
    for (const Entry& entry : answer.ranking) ASSERT_LE(joint, entry.prediction.iteration) << entry.method;
  }
}

TEST(Tune, NothingInTheRankingIsBelowTheBoundWhereWorkersAreLate) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 40; ++round) {
    const Profile profile = made_profile(random, 40);
    Cluster cluster = made_cluster(8, 1e-4, 1e-9 * static_cast<double>(1 + random() % 8));
    cluster.jitter_seconds.value = 1e-3;
    cluster.hosts[random() % 8].slowdown.compute = random() % 2 == 0 ? 1 : 1.2;
    TuneOptions options;
    options.workers = 2 + static_cast<int>(random() % 7);
    const Answer answer = tune(profile, cluster, options);
    for (const Entry& entry : answer.ranking) {
      ASSERT_GE(entry.prediction.iteration, entry.bound * (1 - 1e-12)) << entry.method;
      ASSERT_GE(entry.prediction.iteration, answer.bound * (1 - 1e-12)) << entry.method;
    }
  }
}

/// Links that are known to 5 %.
Cluster cluster_in_doubt() {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  LinkFit& link = cluster.links[LinkClass::kInterHost];
  for (Fit* fit : {&link.alone, &link.streamed}) {
    const CurvePiece line = fit->curve.pieces().front();
    const double a = 0.05 * line.alpha.count(), b = 0.05 * line.beta.value;
    fit->covariance = {a * a, 0, 0, b * b};
  }
  return cluster;
}

TEST(Tune, SaysWhatTheBoundIsAtTheEdgeOfTheFitsDoubt) {
  const Profile profile = *shipped_profile("vgg16");  // bound by its bytes
  const Answer answer = tune(profile, cluster_in_doubt());
  ASSERT_TRUE(answer.bound_low);
  // The time per byte may be 1.645 * 5 % less, and that of compute is what it is.
  EXPECT_LT(*answer.bound_low, answer.bound);
  EXPECT_GE(*answer.bound_low, answer.bound * (1 - 1.66 * 0.05));
  for (const RoadBound& road : answer.bounds) {
    ASSERT_TRUE(road.bound_low);
    EXPECT_LE(*road.bound_low, road.bound);
    EXPECT_GE(*road.bound_low, *answer.bound_low);
  }
  EXPECT_EQ(to_json(answer).at("bound_low_seconds"), answer.bound_low->count());
  EXPECT_EQ(small_answer().bound_low, small_answer().bound) << "nothing is in doubt there";
}

TEST(Tune, SaysNothingOfTheDoubtsEdgeWhereNoneWasAskedFor) {
  TuneOptions options;
  options.draws = 0;
  const Answer answer = tune(*shipped_profile("vgg16"), cluster_in_doubt(), options);
  EXPECT_FALSE(answer.bound_low);
  EXPECT_FALSE(to_json(answer).contains("bound_low_seconds"));
}

TEST(Tune, HardlyAnyClusterThatTheSamplesSupportHasALowerBoundThanTheDoubtsEdge) {
  const Profile profile = *shipped_profile("vgg16");
  const Answer answer = tune(profile, cluster_in_doubt());
  std::vector<Road> roads;
  for (const RoadBound& road : answer.bounds) roads.push_back(road.road);
  ClusterDraws clusters(cluster_in_doubt(), roads, 100, 5);
  int above = 0;
  for (int draw = 0; draw < 100; ++draw) {
    const Planning job(profile, clusters.draw(draw), 4, roads);
    above += std::ranges::all_of(job.roads,
                                 [&](const RoadOption& option) { return option.bound >= *answer.bound_low; })
                 ? 1
                 : 0;
  }
  EXPECT_GE(above, 90);
}

/// The made-up cluster with a ring and servers that were measured, and how well.
Cluster measured_cluster(const FitQuality& of_ring, const FitQuality& of_servers) {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  for (const auto& [road, quality] :
       {std::pair{Road{AllReduce{}}, of_ring}, {Road{ParameterServer{4}}, of_servers}}) {
    OperationFit fit;
    fit.road = road;
    fit.operation = std::holds_alternative<AllReduce>(road) ? Operation::kAllReduce : Operation::kPushPull;
    fit.workers = 4;
    for (Fit* each : {&fit.alone, &fit.streamed}) {
      each->curve = Curve{Seconds{2e-4}, SecondsPerByte{1e-8}};
      each->largest = 64_MiB;
      each->quality = quality;
    }
    cluster.operations.push_back(std::move(fit));
  }
  return cluster;
}

constexpr FitQuality kGood{9, 0.999, 0.01, 0.02}, kDoubtful{9, 0.95, 0.2, 0.5}, kUnusable{9, -0.2, 0.6, 2};

TuneOptions on_measured_roads() {
  TuneOptions options;
  options.roads = {AllReduce{}, ParameterServer{4}};
  return options;
}

TEST(Tune, SaysWhichPlansRestOnDoubtfulFits) {
  const Profile profile = *shipped_profile("resnet50");
  const Answer answer = tune(profile, measured_cluster(kDoubtful, kGood), on_measured_roads());
  ASSERT_EQ(answer.doubtful.size(), 2U);  // alone and streamed
  for (const DoubtfulFit& fit : answer.doubtful) {
    EXPECT_THAT(fit.fit, testing::StartsWith("all-reduce, "));
    EXPECT_THAT(fit.methods, testing::Contains("wfbp-a2a"));
    EXPECT_THAT(fit.methods, testing::Not(testing::Contains("wfbp-ps")));
  }
  const nlohmann::json json = to_json(answer).at("doubtful");
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0].at("p90_relative"), 0.5);
  EXPECT_TRUE(tune(profile, measured_cluster(kGood, kGood), on_measured_roads()).doubtful.empty());
  EXPECT_TRUE(to_json(small_answer()).at("doubtful").empty());
}

TEST(Tune, RefusesToRankByFitsOfWhichNoneIsUsable) {
  const Profile profile = *shipped_profile("resnet50");
  try {
    tune(profile, measured_cluster(kUnusable, kUnusable), on_measured_roads());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPoorFit);
    EXPECT_THAT(error.what(), testing::HasSubstr("cluster \"made\""));
    EXPECT_THAT(error.what(), testing::HasSubstr("p90 200.0 %"));
    EXPECT_THAT(error.what(), testing::HasSubstr("probe it again"));
  }
  EXPECT_NO_THROW(tune(profile, measured_cluster(kUnusable, kDoubtful), on_measured_roads()));
}

TEST(Tune, ReportsSamplesAndSpeedUp) {
  const Answer answer = small_answer();
  const Entry& first = answer.ranking.front();
  EXPECT_NEAR(first.samples_per_second.value(), 4 * 64 / first.prediction.iteration.count(), 1e-9);
  EXPECT_NEAR(first.speedup, 4 * answer.compute / first.prediction.iteration, 1e-12);
}

TEST(Tune, SaysWhyInOneSentence) {
  const Answer answer = small_answer();
  EXPECT_THAT(answer.reason, testing::EndsWith("."));
  EXPECT_THAT(answer.reason, testing::HasSubstr("binds"));
  EXPECT_EQ(answer.reason.find('\n'), std::string::npos);
}

TEST(Tune, OneWorkerHasNothingToExchange) {
  TuneOptions options;
  options.workers = 1;
  const Answer answer = small_answer(options);
  for (const Entry& entry : answer.ranking) EXPECT_EQ(entry.prediction.exposed, Seconds{0}) << entry.method;
  EXPECT_EQ(answer.bound, answer.compute);
}

TEST(Tune, IsDeterministic) { EXPECT_EQ(to_json(small_answer()), to_json(small_answer())); }

TEST(Tune, GivesTheSameAnswerOnEveryThread) {
  const nlohmann::json expected = to_json(small_answer());
  std::vector<nlohmann::json> answers(4);
  {
    std::vector<std::jthread> threads;
    threads.reserve(answers.size());
    for (nlohmann::json& answer : answers)
      threads.emplace_back([&answer] { answer = to_json(small_answer()); });
  }
  for (const nlohmann::json& answer : answers) EXPECT_TRUE(answer == expected);
}

TEST(Tune, DoesNotDependOnTheOrderOfMeasurements) {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  for (const int workers : {2, 4, 8}) {
    for (const Road& road : {Road{AllReduce{}}, Road{AllReduce{Collective::kHalvingDoubling}},
                             Road{ParameterServer{1}}, Road{ParameterServer{workers}}}) {
      OperationFit fit;
      fit.road = road;
      fit.operation = std::holds_alternative<AllReduce>(road) ? Operation::kAllReduce : Operation::kPushPull;
      fit.workers = workers;
      fit.alone.curve = Curve{Seconds{2e-4 * workers}, SecondsPerByte{1e-9 * (8 + workers)}};
      fit.alone.largest = 64_MiB;
      fit.alone.covariance = {1e-12, 0, 0, 1e-21};
      cluster.operations.push_back(std::move(fit));
    }
  }
  TuneOptions options;
  options.workers = 4;
  const std::string expected = to_json(tune(*shipped_profile("resnet50"), cluster, options)).dump();
  std::mt19937_64 random(1);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(cluster.operations.begin(), cluster.operations.end(), random);
    EXPECT_TRUE(to_json(tune(*shipped_profile("resnet50"), cluster, options)).dump() == expected) << round;
  }
}

TEST(Tune, HashedServersAreTriedWhenAsked) {
  TuneOptions options;
  options.limits.hashed = true;
  options.limits.dedicated_servers = 4;
  const auto roads = roads_for(made_cluster(8, 200e-6, 8e-9), 4, options.limits);
  const auto hashed = [](const Road& road) {
    const auto* servers = std::get_if<ParameterServer>(&road);
    return servers != nullptr && servers->assignment == Assignment::kHashed;
  };
  EXPECT_EQ(std::count_if(roads.begin(), roads.end(), hashed), 4);  // 2 and 4, colocated and dedicated
  options.workers = 4;
  const Answer answer = tune(*shipped_profile("resnet50"), made_cluster(8, 200e-6, 8e-9), options);
  for (const Entry& entry : answer.ranking) {
    EXPECT_GE(entry.prediction.iteration, answer.bound * (1 - 1e-12)) << entry.method;
  }
  options.limits.hashed = false;
  const auto without = roads_for(made_cluster(8, 200e-6, 8e-9), 4, options.limits);
  EXPECT_EQ(std::count_if(without.begin(), without.end(), hashed), 0);
}

TEST(Tune, ServersInNumbersThatWereNotMeasuredAreLeftOutWhereAllWere) {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  const auto beside = [](int servers, Assignment assignment = Assignment::kEven) -> Road {
    return ParameterServer{servers, Placement::kColocated, assignment};
  };
  const auto left = [&](const std::vector<Road>& roads) { return worth_pricing(roads, cluster, 4); };
  const std::vector<Road> all{AllReduce{}, beside(1), beside(2), beside(4), beside(4, Assignment::kHashed)};
  EXPECT_EQ(left(all), all) << "nothing was measured";
  cluster.operations.push_back({beside(1), Operation::kPushPull, 4, {}, {}});
  EXPECT_EQ(left(all), all) << "fewer servers than workers tell little of more";
  cluster.operations.push_back({beside(4), Operation::kPushPull, 4, {}, {}});
  EXPECT_EQ(left(all),
            (std::vector<Road>{AllReduce{}, beside(1), beside(4), beside(4, Assignment::kHashed)}));
  EXPECT_EQ(left({beside(1), beside(2)}), (std::vector<Road>{beside(1), beside(2)}))
      << "at most two are allowed";
  EXPECT_EQ(worth_pricing(all, cluster, 8), all) << "measured with other workers";
}

TEST(Tune, SumsInsideHostsBeforeDedicatedServersWhereThatWins) {
  // 4 hosts of 4 workers, as many server hosts. Each worker for itself loads a card with 4 D either way, a
  // ring over all with 2 * 15/16 D, on one channel; behind a local sum it is D each way, on two.
  const Cluster cluster = made_cluster_of_hosts(8, 4, 20e-6, 8e-9);
  TuneOptions options;
  options.workers = 16;
  options.draws = 0;
  options.limits.dedicated_servers = 16;
  const Answer answer = tune(*shipped_profile("bert_base"), cluster, options);
  const auto* servers = std::get_if<ParameterServer>(&answer.ranking.front().plan.road);
  ASSERT_NE(servers, nullptr) << describe(answer.ranking.front().plan.road);
  EXPECT_EQ(servers->local_sum, LocalSum::kFirst);
  EXPECT_EQ(servers->placement, Placement::kDedicated);
  for (const Entry& entry : answer.ranking) {
    EXPECT_NO_THROW(check(entry.plan, *shipped_profile("bert_base"))) << entry.method;
  }
  // Where every host has one worker there is nothing to sum.
  const auto roads = roads_for(made_cluster(8, 20e-6, 8e-9), 8, options.limits);
  EXPECT_TRUE(std::none_of(roads.begin(), roads.end(), [](const Road& road) {
    const auto* ps = std::get_if<ParameterServer>(&road);
    return ps != nullptr && ps->local_sum == LocalSum::kFirst;
  }));
}

TEST(Tune, ServersKeepAwayFromASlowHostWhereverItIs) {
  const Profile profile = *shipped_profile("resnet50");
  TuneOptions options;
  options.draws = 0;
  for (const int slow : {0, 1, 3}) {
    Cluster cluster = made_cluster(4, 20e-6, 8e-9);
    cluster.hosts[static_cast<std::size_t>(slow)].slowdown.time_per_byte = 4;
    const Answer answer = tune(profile, cluster, options);
    const auto* servers = std::get_if<ParameterServer>(&answer.ranking.front().plan.road);
    ASSERT_NE(servers, nullptr) << slow << ": " << describe(answer.ranking.front().plan.road);
    for (int server = 0; server < servers->servers; ++server)
      EXPECT_NE((servers->first + server) % 4, slow) << describe(*servers);
    const auto roads = roads_for(cluster, 4, options.limits);
    const Road all_others =
        ParameterServer{3, Placement::kColocated, Assignment::kEven, LocalSum::kNone, (slow + 1) % 4};
    EXPECT_EQ(std::count(roads.begin(), roads.end(), all_others), 1);
    EXPECT_NO_THROW(check(answer.ranking.front().plan, profile));
  }
}

TEST(Tune, SlowHostsCountWhereTheyAreUsed) {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  cluster.hosts[3].slowdown.compute = 1.5;
  const Answer slow = tune(*shipped_profile("resnet50"), cluster), even = small_answer();
  EXPECT_EQ(slow.compute, even.compute);  // of a host as the profile says
  for (const Entry& entry : slow.ranking) {
    EXPECT_NEAR(entry.prediction.compute.count(), 1.5 * even.compute.count(), 1e-9);
    EXPECT_GE(entry.prediction.iteration, 1.5 * even.compute);
    EXPECT_LE(entry.speedup, 4 / 1.5 + 1e-9);
    EXPECT_GE(entry.prediction.iteration, slow.bound * (1 - 1e-12)) << entry.method;
  }
  TuneOptions three;
  three.workers = 3;
  EXPECT_EQ(tune(*shipped_profile("resnet50"), cluster, three).ranking.front().prediction.iteration,
            tune(*shipped_profile("resnet50"), made_cluster(4, 200e-6, 8e-9), three)
                .ranking.front()
                .prediction.iteration);
}

TEST(Tune, ContentionMakesEverythingSlowerAndStaysAboveTheBound) {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  cluster.contention = {0.5, 0.2};
  const Answer slowed = tune(*shipped_profile("resnet50"), cluster), free = small_answer();
  EXPECT_EQ(slowed.compute, free.compute);
  for (const Entry& entry : slowed.ranking) {
    EXPECT_GE(entry.prediction.iteration, slowed.bound * (1 - 1e-12)) << entry.method;
    EXPECT_NEAR(entry.prediction.compute.count(), free.compute.count(), 1e-9);
    const auto same = std::find_if(free.ranking.begin(), free.ranking.end(),
                                   [&](const Entry& e) { return e.method == entry.method; });
    EXPECT_GE(entry.prediction.iteration, same->prediction.iteration * (1 - 1e-9)) << entry.method;
    EXPECT_LT(entry.doubt->low, entry.doubt->high) << entry.method;  // the constant's own doubt
  }
}

TEST(Tune, RefusesWhatDoesNotFit) {
  TuneOptions options;
  options.workers = -1;
  EXPECT_THROW(small_answer(options), Error);
  options = {};
  options.limits.dedicated_servers = 4;  // nobody is left to work
  EXPECT_THROW(small_answer(options), Error);
  Cluster bare = made_cluster(4, 1e-4, 1e-9);
  bare.links.clear();
  EXPECT_THROW(tune(*shipped_profile("resnet50"), bare), Error);
}

TEST(Tune, JsonHasWhatARankingShows) {
  const nlohmann::json json = to_json(small_answer());
  for (const char* key :
       {"model", "workers", "bound_seconds", "bounds", "ranking", "chosen", "reason", "plan"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  for (const char* key : {"method", "iteration_seconds", "samples_per_second", "speedup", "exposed_seconds",
                          "messages", "gap_ratio"}) {
    EXPECT_TRUE(json["ranking"][0].contains(key)) << key;
  }
}

}  // namespace
}  // namespace commtune::tuner
