#include "probes/probe.h"

#include <gmock/gmock.h>

#include <future>
#include <latch>
#include <thread>

#include "executor/transport/local/local.h"
#include "perfmodel/base/error.h"
#include "probes/host/host_lock.h"

namespace commtune::probes {
namespace {

class Recorder : public EventSink {
 public:
  void on_facts(const ClusterFacts& given) override { facts = given; }
  void on_progress(const ProbeProgress& progress) override {
    EXPECT_FALSE(progress.what.empty());
    EXPECT_GE(progress.fraction, 0);
    EXPECT_LE(progress.fraction, 1);
  }
  void on_sample(const ProbeSample& sample) override {
    samples.push_back(sample);
    if (fail_after >= 0 && static_cast<int>(samples.size()) > fail_after) {
      throw Error(ErrorCode::kStorage, "disk full");
    }
  }
  bool stop_requested() override { return stop_after >= 0 && static_cast<int>(samples.size()) >= stop_after; }

  ClusterFacts facts;
  std::vector<ProbeSample> samples;
  int stop_after = -1, fail_after = -1;
};

/// How a rank ended: with an empty text, or with what it threw.
struct Outcome {
  ProbeResult result;
  std::string error;
  ErrorCode code{};
};

/// Always says the same, and counts how often it was asked.
class OneMind : public Advisor {
 public:
  explicit OneMind(Advice advice) : advice_(std::move(advice)) {}
  Advice advise(const Cluster& known, Seconds limit) override {
    EXPECT_NE(find_operation(known, AllReduce{}, Operation::kAllReduce, 2), nullptr);
    EXPECT_GE(limit.count(), 0);
    ++asked;
    return advice_;
  }
  int asked = 0;

 private:
  Advice advice_;
};

/// All ranks as threads; those for which `present` is false never answer.
std::vector<Outcome> run_ranks(int n, const ProbeOptions& options, Recorder& sink,
                               const std::vector<bool>& present = {}, Advisor* advisor = nullptr) {
  auto transports = make_local_transports(n);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(n));
  std::vector<std::jthread> threads;
  std::latch all_done(n);
  for (int rank = 0; rank < n; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    threads.emplace_back([&, i, rank] {
      Recorder ignored;
      if (present.empty() || present[i]) {
        try {
          outcomes[i].result = probe(*transports[i], options, rank == 0 ? sink : ignored, advisor);
        } catch (const Error& error) {
          outcomes[i].error = error.what();
          outcomes[i].code = error.code();
        }
      }
      all_done.arrive_and_wait();  // transports stay until nobody needs them
    });
  }
  threads.clear();
  return outcomes;
}

ProbeOptions quick() {
  ProbeOptions options;
  options.budget = Seconds{1.0};
  options.last = Bytes{256 << 10};
  options.exclusive = false;
  options.timeout = Seconds{120};
  options.cluster_name = "threads";
  return options;
}

/// A few sizes, twice each, however long that takes: it ends complete, not when time is up.
ProbeOptions coarse() {
  ProbeOptions options = quick();
  options.budget = Seconds{600};
  options.last = Bytes{16 << 10};
  options.factor = 4096;
  options.iterations = options.max_iterations = 2;
  return options;
}

TEST(Probe, MeasuresLinksRoadsAndMemory) {
  Recorder sink;
  const auto outcomes = run_ranks(4, coarse(), sink);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcomes[0].result.end, ProbeEnd::kComplete);
  const BudgetSplit& split = outcomes[0].result.split;
  for (const Seconds part : {split.survey, split.links, split.first_sizes, split.rest})
    EXPECT_GT(part.count(), 0);
  const Seconds sum = split.survey + split.links + split.first_sizes + split.refinement + split.rest;
  EXPECT_NEAR(sum.count(), outcomes[0].result.elapsed.count(), 1e-6);
  const Cluster& cluster = outcomes[0].result.cluster;
  EXPECT_EQ(cluster.name, "threads");
  EXPECT_EQ(cluster.hosts.size(), 4u);
  EXPECT_EQ(cluster.fingerprint, fingerprint(sink.facts));
  EXPECT_TRUE(cluster.links.contains(LinkClass::kInterHost));
  EXPECT_NE(find_operation(cluster, AllReduce{}, Operation::kAllReduce, 4), nullptr);
  // Fewer servers than ranks may begin elsewhere: on a busy machine a thread can seem to be a slow host.
  EXPECT_NE(find_operation(cluster, ParameterServer{4}, Operation::kPushPull, 4), nullptr);
  EXPECT_GT(cluster.reduce_seconds_per_byte.value, 0);
  EXPECT_GT(cluster.copy_seconds_per_byte.value, 0);
  ASSERT_EQ(cluster.casts.size(), 2U);
  for (const auto& [wire, costs] : cluster.casts) {
    EXPECT_GT(costs.cast_seconds_per_byte.value, 0) << to_string(wire);
    EXPECT_GT(costs.reduce_seconds_per_byte.value, 0) << to_string(wire);
  }
  EXPECT_EQ(outcomes[0].result.links.links.size(), 12u);  // 4 * 3 directions
  EXPECT_EQ(std::ranges::count(sink.samples, Subject::kHeadOfLine,
                               [](const ProbeSample& sample) { return sample.quantity.subject; }),
            2);  // at servers and on a ring
  EXPECT_FALSE(sink.samples.empty());
  EXPECT_TRUE(outcomes[1].result.samples.empty());
}

TEST(Probe, AsksWhatPlansNeedOnceRoadsHaveTheirFirstSizes) {
  Recorder sink;
  ProbeOptions options = coarse();
  options.factor = 64;  // leaves sizes between the first ones
  OneMind advisor({{{AllReduce{}, 2, 0.1, Bytes{64}, Bytes{4096}}}, "one: all-to-all ring", false});
  const ProbeResult result = run_ranks(2, options, sink, {}, &advisor)[0].result;
  EXPECT_EQ(advisor.asked, 1);  // of 600 s hardly anything is spent
  EXPECT_EQ(result.end, ProbeEnd::kComplete);
  EXPECT_GT(result.split.planning.count(), 0);
  EXPECT_THAT(result.notes,
              testing::Contains(testing::HasSubstr("1 look; the last one chose one: all-to-all ring")));
}

TEST(Probe, MeasuresTheRoadThatPlansNeedMostThoughNobodyOfferedIt) {
  Recorder sink;
  ProbeOptions options = coarse();
  options.factor = 64;
  const ParameterServer hashed{2, Placement::kColocated, Assignment::kHashed};
  OneMind advisor({{{AllReduce{}, 2, 0.1, Bytes{64}, Bytes{4096}}, {hashed, 2, 0.2, Bytes{64}, Bytes{4096}}},
                   "one: 2 colocated servers, hashed",
                   false});
  const ProbeResult result = run_ranks(2, options, sink, {}, &advisor)[0].result;
  EXPECT_EQ(result.end, ProbeEnd::kComplete);
  EXPECT_NE(find_operation(result.cluster, hashed, Operation::kPushPull, 2), nullptr);
}

TEST(Probe, EndsWhenTheChoiceIsSettled) {
  Recorder sink;
  ProbeOptions options = quick();
  options.budget = Seconds{6};
  options.max_iterations = 100'000;  // more than there is time for
  options.width = 1e-6;
  OneMind advisor({{}, "one: all-to-all ring", true});
  const ProbeResult result = run_ranks(2, options, sink, {}, &advisor)[0].result;
  if (advisor.asked < 3) GTEST_SKIP() << "this machine is too slow for three looks within their share";
  EXPECT_EQ(advisor.asked, 3);
  EXPECT_EQ(result.end, ProbeEnd::kSettled);
  EXPECT_LT(result.elapsed, *options.budget);
  EXPECT_THAT(result.notes, testing::Contains(testing::HasSubstr("which is certain")));
}

TEST(Probe, KeepsTheTraitsThatItMeasuredWith) {
  Recorder sink;
  ProbeOptions options = coarse();
  options.budget = Seconds{5};  // of which so short transfers would take whatever there is
  const Cluster usual = run_ranks(2, options, sink)[0].result.cluster;
  EXPECT_FALSE(usual.traits.assumed);
  EXPECT_EQ(usual.traits.chunk, TransferTraits{}.chunk);
  options.chunk = 1_KiB;
  const Cluster other = run_ranks(2, options, sink)[0].result.cluster;
  EXPECT_EQ(other.traits.chunk, 1_KiB);
  EXPECT_NE(other.fingerprint, usual.fingerprint) << "its samples are none of the other's";
}

TEST(Probe, WorksOnOneRank) {
  Recorder sink;
  const auto outcomes = run_ranks(1, coarse(), sink);
  EXPECT_EQ(outcomes[0].error, "");
  EXPECT_GT(outcomes[0].result.cluster.copy_seconds_per_byte.value, 0);
  EXPECT_TRUE(outcomes[0].result.cluster.links.empty());
}

TEST(Probe, MeasuresDedicatedServersBesideTheWorkers) {
  ProbeOptions options = coarse();
  options.servers = {ParameterServer{1, Placement::kDedicated}};
  Recorder sink;
  const auto outcomes = run_ranks(3, options, sink);
  EXPECT_EQ(outcomes[0].error, "");
  EXPECT_NE(find_operation(outcomes[0].result.cluster, options.servers[0], Operation::kPushPull, 2), nullptr);
}

/// Its fits take until the other rank is home, or for as long as nobody would wait.
class SlowFits : public Recorder {
 public:
  void on_progress(const ProbeProgress& progress) override {
    Recorder::on_progress(progress);
    if (progress.what.find("fits") == std::string::npos) return;
    others_were_home = home.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  }
  std::future<void> home;
  bool others_were_home = false;
};

TEST(Probe, SendsTheOthersHomeBeforeItFits) {
  auto transports = make_local_transports(2);
  const ProbeOptions options = coarse();
  std::promise<void> home;
  SlowFits sink;
  sink.home = home.get_future();
  std::jthread other([&] {
    Recorder ignored;
    probe(*transports[1], options, ignored);
    home.set_value();
  });
  const ProbeResult result = probe(*transports[0], options, sink);
  EXPECT_TRUE(sink.others_were_home);
  EXPECT_NE(find_operation(result.cluster, AllReduce{}, Operation::kAllReduce, 2), nullptr);
}

TEST(Probe, StopsWhenAskedAndKeepsWhatItHas) {
  Recorder sink;
  sink.stop_after = 10;
  const auto outcomes = run_ranks(2, coarse(), sink);  // a budget that ten samples never spend
  EXPECT_EQ(outcomes[0].error, "");
  EXPECT_EQ(outcomes[1].error, "");
  EXPECT_EQ(outcomes[0].result.end, ProbeEnd::kStopped);
  EXPECT_FALSE(outcomes[0].result.would_measure.empty());
}

TEST(Probe, GoesOnFromEarlierSamples) {
  Recorder first;
  ProbeOptions options = coarse();
  run_ranks(2, options, first);
  const auto count = [](const Recorder& recorder, Subject subject) {
    return std::ranges::count(recorder.samples, subject,
                              [](const ProbeSample& sample) { return sample.quantity.subject; });
  };
  const auto once = {Subject::kJitter, Subject::kHeadOfLine};
  EXPECT_EQ(count(first, Subject::kJitter), 1);
  EXPECT_EQ(count(first, Subject::kHeadOfLine), 2);
  options.already = first.samples;
  Recorder second;
  const auto outcomes = run_ranks(2, options, second);
  for (const Subject subject : once) EXPECT_EQ(count(second, subject), 0) << to_string(subject);
  EXPECT_GE(outcomes[0].result.samples.size(), latest(first.samples).size());
}

TEST(Probe, EndsOnAllRanksWhenASampleCannotBeStored) {
  Recorder sink;
  sink.fail_after = 5;
  const auto outcomes = run_ranks(3, coarse(), sink);
  EXPECT_EQ(outcomes[0].code, ErrorCode::kStorage);
  for (const int rank : {1, 2}) {
    EXPECT_THAT(outcomes[static_cast<std::size_t>(rank)].error, testing::HasSubstr("disk full"));
  }
}

TEST(Probe, NamesARankThatDoesNotAnswer) {
  ProbeOptions options = quick();
  options.timeout = Seconds{4};  // for the ranks that are there, however slow
  Recorder sink;
  const auto outcomes = run_ranks(3, options, sink, {true, true, false});
  EXPECT_EQ(outcomes[0].code, ErrorCode::kTimeout);
  EXPECT_THAT(outcomes[0].error, testing::HasSubstr("local2"));
  EXPECT_THAT(outcomes[0].error, testing::Not(testing::HasSubstr("local1")));
}

TEST(Probe, RefusesWhileAnotherRuns) {
  const auto other = HostLock::take();
  if (!other) GTEST_SKIP() << "a probe is running on this machine";
  ProbeOptions options = quick();
  options.exclusive = true;
  Recorder sink;
  const auto outcomes = run_ranks(2, options, sink);
  EXPECT_EQ(outcomes[0].code, ErrorCode::kConflict);
  EXPECT_THAT(outcomes[0].error, testing::HasSubstr("another probe is running on host local0"));
  EXPECT_THAT(outcomes[1].error, testing::HasSubstr("another probe is running"));
  EXPECT_TRUE(sink.samples.empty());
}

TEST(Probe, KeepsToItsBudget) {
  ProbeOptions options = quick();
  options.budget = Seconds{0.5};
  Recorder sink;
  const auto outcomes = run_ranks(2, options, sink);
  EXPECT_EQ(outcomes[0].result.end, ProbeEnd::kBudget);
  EXPECT_FALSE(outcomes[0].result.would_measure.empty());
}

TEST(Probe, KeepsToItsTraffic) {
  ProbeOptions options = quick();
  options.traffic = Bytes{16 << 20};
  Recorder sink;
  const auto outcomes = run_ranks(3, options, sink);
  EXPECT_EQ(outcomes[0].error, "");
  EXPECT_LE(outcomes[0].result.traffic, options.traffic);
  EXPECT_EQ(outcomes[0].result.end, ProbeEnd::kBudget);
}

TEST(Probe, RefusesBadOptionsBeforeItStarts) {
  ProbeOptions options = quick();
  options.factor = 0.5;
  Recorder sink;
  const auto outcomes = run_ranks(2, options, sink);
  EXPECT_EQ(outcomes[0].code, ErrorCode::kBadInput);
  EXPECT_TRUE(sink.samples.empty());
}

}  // namespace
}  // namespace commtune::probes
