#include "executor/replay/run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "executor/transport/local/local.h"
#include "perfmodel/base/error.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

using ::testing::HasSubstr;

RunOptions short_run() {
  RunOptions options;
  options.iterations = 2;
  options.warmup = 1;
  options.check_iterations = 2;
  options.timeout = Seconds{100};
  options.chunk = Bytes{4096};  // so that small tensors travel in several chunks
  return options;
}

RunReport run_everywhere(const Plan& plan, const Profile& profile, const RunOptions& options,
                         const LocalOptions& ranks = {}) {
  RunReport report;
  const auto body = [&](Transport& transport) {
    RunReport own = run_plan(transport, plan, profile, options);
    if (transport.peers().rank == 0) report = std::move(own);
  };
  on_ranks(ranks_of(plan), body, ranks);
  return report;
}

/// Road and number of workers.
class AnyRoad : public ::testing::TestWithParam<std::tuple<int, std::size_t>> {
 protected:
  Road road() const { return roads_for(workers())[std::get<1>(GetParam())]; }
  static int workers() { return std::get<0>(GetParam()); }
};

TEST_P(AnyRoad, BringsEveryElementBackWhateverThePlan) {
  // The run itself compares every element of every tensor with the serial reference, and throws.
  if (std::get<1>(GetParam()) >= roads_for(workers()).size())
    GTEST_SKIP() << "no such road for so few workers";
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const RandomJob job = random_job(seed * 1000 + static_cast<std::uint64_t>(workers()), workers(), road());
    RunOptions options = short_run();
    options.result = seed % 2 == 0 ? Result::kMean : Result::kSum;
    SCOPED_TRACE(fmt::format("seed {}, {}", seed, describe(road())));
    LocalOptions ranks{.ranks_per_host = 1 + static_cast<int>(seed % 3)};
    if (seed > 3) ranks.send_ends = LocalOptions::SendEnds::kWhenReceived;
    const RunReport report = run_everywhere(job.plan, job.profile, options, ranks);
    const auto tensors = static_cast<std::uint64_t>(workers()) * 2 * job.profile.tensor_count();
    EXPECT_EQ(report.check.tensors, tensors);
    EXPECT_EQ(report.iteration_seconds.size(), 2U);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, AnyRoad,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 7),
                                            ::testing::Range<std::size_t>(0, roads_for(8).size())),
                         [](const auto& test) {
                           return fmt::format("{}workers_road{}", std::get<0>(test.param),
                                              std::get<1>(test.param));
                         });

class LargeMessages : public ::testing::TestWithParam<Collective> {};

TEST_P(LargeMessages, EndWhereALibraryAsksBeforeItSends) {
  // Chunks of 60 KiB, of which the transport is given two at a time, and a send ends only with its receive.
  // The credit lets a rank start a message while its peer, which has more of the one before left to send,
  // may not start it: the rank's next sends of the one before must not wait behind the new one's.
  const Profile profile =
      profile_of({150'000, 150'000, 20'000, 150'000, 150'000, 1'000, 150'000}, Seconds{20e-6});
  Plan plan = wait_free_plan(profile, 4, AllReduce{GetParam()});
  RunOptions options = short_run();
  options.chunk = Bytes{60 << 10};
  options.iterations = 10;
  for (const std::uint64_t credit : {100'000, 300'000, 500'000}) {
    plan.credit = Bytes{credit};
    SCOPED_TRACE(fmt::format("credit {}", credit));
    run_everywhere(plan, profile, options,
                   {.ranks_per_host = 2, .send_ends = LocalOptions::SendEnds::kWhenReceived});
  }
}

INSTANTIATE_TEST_SUITE_P(Roads, LargeMessages,
                         ::testing::Values(Collective::kRing, Collective::kHalvingDoubling,
                                           Collective::kRecursiveDoubling, Collective::kOneShot,
                                           Collective::kDoubleBinaryTree, Collective::kHierarchical),
                         [](const auto& test) {
                           std::string name = to_string(test.param);
                           std::erase(name, '-');
                           return name;
                         });

TEST(RunPlan, CopiesOnlyWhatIsNoStretchOfMemory) {
  const Profile profile = profile_of({1000, 20, 3000});
  const std::vector<TensorRef> tensors = tensors_of(profile);
  Plan plan = wait_free_plan(profile, 2, AllReduce{Collective::kRing});
  plan.messages = {{{{2, {}, tensors[2].bytes}, {1, {}, tensors[1].bytes}, {0, {}, tensors[0].bytes}}}};
  plan.priority = {0};
  RunReport report = run_everywhere(plan, profile, short_run());
  EXPECT_EQ(report.ranks[0].copying_seconds, 0);
  EXPECT_EQ(report.ranks[0].gradient_bytes, profile.gradient_bytes().count);
  std::reverse(plan.messages[0].pieces.begin(), plan.messages[0].pieces.end());
  report = run_everywhere(plan, profile, short_run());
  EXPECT_GT(report.ranks[0].copying_seconds, 0);
}

TEST(RunPlan, ReportsEveryRankAndEveryMessage) {
  const Profile profile = profile_of({1000, 20, 3000});
  const Plan plan = wait_free_plan(profile, 2, ParameterServer{1, Placement::kDedicated, Assignment::kEven});
  const RunReport report = run_everywhere(plan, profile, short_run());
  ASSERT_EQ(report.ranks.size(), 3U);
  EXPECT_TRUE(report.ranks[1].worker);
  EXPECT_FALSE(report.ranks[2].worker);
  EXPECT_EQ(report.ranks[0].iteration_seconds.size(), 2U);
  EXPECT_EQ(report.plan_digest, digest(plan));
  ASSERT_EQ(report.messages.size(), 3U);
  for (const MessageReport& message : report.messages) {
    EXPECT_LE(message.queued_seconds, message.started_seconds);
    EXPECT_LE(message.started_seconds, message.reduced_seconds);
    EXPECT_LE(message.reduced_seconds, message.distributed_seconds);
  }
  // No iteration is shorter than its layers: 3 layers of 50 us both ways.
  EXPECT_GE(report.median_seconds, 300e-6);
  EXPECT_EQ(to_json(run_report_from_json(to_json(report))), to_json(report));
  EXPECT_GT(report.ranks[0].peak_bytes, 0U);
  EXPECT_GT(report.ranks[0].cpu_seconds, 0);
  // A message of one whole tensor travels from where it lies; how long threads waited for a core has tests of
  // its own.
  EXPECT_EQ(report.ranks[0].copying_seconds, 0);
}

/// Ring of two: each sends half of a message and the other half back, in each of 2 iterations.
TEST(RunPlan, ReportsHowManyBytesEachRankSent) {
  const Profile profile = profile_of({1000, 20, 3000});
  Plan plan = wait_free_plan(profile, 2, AllReduce{});
  const RunReport plain = run_everywhere(plan, profile, short_run());
  plan.wire = WireFormat::kBfloat16;
  const RunReport cast = run_everywhere(plan, profile, short_run());
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(plain.ranks[rank].sent_bytes, 2 * profile.gradient_bytes().count);
    EXPECT_EQ(cast.ranks[rank].sent_bytes, profile.gradient_bytes().count);
  }
  EXPECT_EQ(plain.wire, "");
  EXPECT_EQ(cast.wire, "bf16");
  EXPECT_GT(cast.ranks[0].copying_seconds, 0) << "casts are counted as copies";
  EXPECT_EQ(overflows(cast), 0U);
  EXPECT_EQ(to_json(run_report_from_json(to_json(cast))), to_json(cast));
}

std::string refusal_of_part(const std::string& text) {
  try {
    rank_part_from_text(text, "rank 1 (host a)");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    return error.what();
  }
}

TEST(RunReport, IsReadWithoutWhatEarlierVersionsDidNotCount) {
  RunReport report;
  report.ranks.resize(1);
  report.ranks[0].host = "a";
  report.ranks[0].cpu_seconds = 2;
  nlohmann::json json = to_json(report);
  json["ranks"][0].erase("copying_seconds");
  json["ranks"][0].erase("delayed_seconds");
  const RunReport read = run_report_from_json(json);
  EXPECT_EQ(to_json(read), to_json(report));
}

TEST(RunReport, OfAStrangerIsRefusedByTheNameOfItsRank) {
  RunReport report;
  EXPECT_EQ(refusal_of_part(rank_part_to_text(report)), "rank 1 (host a): ranks: expected its own, got 0");
  for (const char* const text :
       {"", "{", "[]", "{}", R"({"report": 1})", R"({"report": {"format": "other"}})"}) {
    EXPECT_THAT(refusal_of_part(text), HasSubstr("rank 1 (host a)")) << text;
  }
  report.ranks.resize(1);
  EXPECT_EQ(refusal_of_part(rank_part_to_text(report)), "");
}

TEST(RunPlan, EndsOnAllRanksWithOneTextWhenTheyDisagree) {
  const Profile profile = profile_of({1000, 20});
  std::mutex mutex;
  std::vector<std::string> texts;
  on_ranks(3, [&](Transport& transport) {
    Plan plan = wait_free_plan(profile, 3, AllReduce{});
    if (transport.peers().rank == 1) plan.credit = Bytes{77};
    try {
      run_plan(transport, plan, profile, short_run());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConflict);
      const std::lock_guard lock(mutex);
      texts.emplace_back(error.what());
    }
  });
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_THAT(texts[0], HasSubstr("ranks disagree about the plan"));
  EXPECT_THAT(texts[0], HasSubstr("rank 1 (host local1)"));
}

TEST(RunPlan, RefusesAPlanForAnotherNumberOfRanks) {
  const Profile profile = profile_of({1000});
  const Plan plan = wait_free_plan(profile, 2, AllReduce{});
  EXPECT_THROW(on_ranks(3, [&](Transport& transport) { run_plan(transport, plan, profile, short_run()); }),
               Error);
}

TEST(RunPlan, NamesRankTensorAndStageWhenAPeerStopsAnswering) {
  const Profile profile = profile_of({1000, 5000});
  const Plan plan = wait_free_plan(profile, 2, AllReduce{});
  RunOptions options = short_run();
  options.timeout = Seconds{2};
  std::latch other_ended(1);
  std::string text;
  const auto body = [&](Transport& transport) {
    const int rank = transport.peers().rank;
    const auto stop_in_the_middle = [&](const RunProgress& progress) {
      if (rank == 1 && progress.phase == RunProgress::Phase::kChecking) {
        other_ended.wait();  // as a stopped process would
        throw Error(ErrorCode::kInterrupted, "stopped");
      }
    };
    try {
      run_plan(transport, plan, profile, options, stop_in_the_middle);
      other_ended.count_down();
    } catch (const Error& error) {
      if (rank == 0) {
        text = error.what();
        other_ended.count_down();
      }
      throw;
    }
  };
  EXPECT_THROW(on_ranks(2, body), Error);
  EXPECT_EQ(text,
            "rank 0 (host local0): waited 2.0 s for rank 1 (host local1) in the reduce stage of message 0 "
            "(layer1.weight)");
}

TEST(RunPlan, WritesATraceThatIsJson) {
  const Profile profile = profile_of({1000, 20, 3000});
  const Plan plan = wait_free_plan(profile, 2, AllReduce{});
  RunOptions options = short_run();
  const auto directory =
      std::filesystem::path(::testing::TempDir()) / fmt::format("commtune_trace_test_{}", ::getpid());
  options.trace_directory = directory.string();
  options.trace_steps = 1;
  const RunReport report = run_everywhere(plan, profile, options);
  std::ifstream file(report.ranks[1].trace);
  const nlohmann::json trace = nlohmann::json::parse(file);
  int compute = 0;
  int messages = 0;
  for (const auto& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 1);
    if (event.at("ph") != "X") continue;
    EXPECT_GE(event.at("dur").get<double>(), 0);
    const auto name = event.at("name").get<std::string>();
    compute += name.starts_with("backward") || name.starts_with("forward") ? 1 : 0;
    messages += name.starts_with("message") ? 1 : 0;
  }
  EXPECT_EQ(compute, 6);
  EXPECT_EQ(messages, 6);  // two stages of three
  // And all ranks' in one.
  std::ifstream merged_file(directory / "all_ranks.json");
  const nlohmann::json merged = nlohmann::json::parse(merged_file);
  std::set<int> ranks;
  for (const auto& event : merged.at("traceEvents")) ranks.insert(event.at("pid").get<int>());
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  std::filesystem::remove_all(directory);
}

// ---- Several plans in one session ----

/// What rank 0 was told of plans that took turns.
struct TurnsHeard {
  std::vector<std::optional<RunReport>> reports;
  std::vector<std::string> refusals;
  std::vector<std::size_t> turns;  // in their order: which plan
};

TurnsHeard take_turns(const std::vector<PlannedRun>& plans, const Profile& profile, int ranks, int rounds) {
  TurnsHeard heard;
  heard.reports.resize(plans.size());
  heard.refusals.resize(plans.size());
  on_ranks(ranks, [&](Transport& transport) {
    TurnOptions options;
    options.rounds = rounds;
    if (transport.peers().rank == 0) {
      options.progress = [&](const RunProgress& progress) {
        if (progress.phase == RunProgress::Phase::kAgreeing) heard.turns.push_back(progress.plan);
      };
      options.finished = [&](std::size_t plan, RunReport report) { heard.reports[plan] = std::move(report); };
      options.refused = [&](std::size_t plan, const Refusal& refusal) {
        heard.refusals[plan] = refusal.text;
      };
    }
    run_plans(transport, plans, profile, options);
  });
  return heard;
}

TEST(RunPlans, TakeTurnsAndAreReportedEach) {
  // One plan with two dedicated servers, during whose turns nobody is idle, between two that need none.
  const Profile profile = profile_of({1000, 20, 3000});
  RunOptions options = short_run();
  options.iterations = 5;
  const ParameterServer servers{2, Placement::kDedicated, Assignment::kEven};
  const std::vector<PlannedRun> plans = {{random_plan(1, profile, 2, AllReduce{}), options},
                                         {random_plan(2, profile, 2, servers), options},
                                         {random_plan(3, profile, 2, AllReduce{}), options}};
  const TurnsHeard heard = take_turns(plans, profile, 4, 2);
  EXPECT_THAT(heard.turns, ::testing::ElementsAre(0, 1, 2, 0, 1, 2));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    ASSERT_TRUE(heard.reports[i]) << heard.refusals[i];
    const RunReport& report = *heard.reports[i];
    EXPECT_EQ(report.plan_digest, digest(plans[i].plan));
    EXPECT_EQ(report.iteration_seconds.size(), 5U);
    EXPECT_EQ(report.check.iterations, 2);
    EXPECT_EQ(report.check.tensors, 2U * 2U * 3U);  // 2 workers, 2 iterations, 3 tensors
    ASSERT_EQ(report.ranks.size(), 4U);
    EXPECT_TRUE(report.ranks[1].worker);
    EXPECT_FALSE(report.ranks[2].worker);
    EXPECT_GT(report.ranks[0].wall_seconds, 0);
  }
  EXPECT_GT(heard.reports[1]->ranks[3].buffer_bytes, 0U);
  EXPECT_EQ(heard.reports[2]->ranks[3].buffer_bytes, 0U);  // idle
}

TEST(RunPlans, APlanThatIsRefusedEndsNoOther) {
  const Profile profile = profile_of({1000, 20});
  Plan broken = random_plan(2, profile, 2, AllReduce{});
  broken.messages.clear();
  const std::vector<PlannedRun> plans = {{random_plan(1, profile, 2, AllReduce{}), short_run()},
                                         {broken, short_run()},
                                         {random_plan(3, profile, 2, AllReduce{}), short_run()}};
  const TurnsHeard heard = take_turns(plans, profile, 2, 2);
  EXPECT_THAT(heard.turns, ::testing::ElementsAre(0, 1, 2, 0, 2));
  EXPECT_TRUE(heard.reports[0]);
  EXPECT_FALSE(heard.reports[1]);
  EXPECT_THAT(heard.refusals[1], HasSubstr("no message carries tensor 0"));
  EXPECT_TRUE(heard.reports[2]);
}

TEST(RunPlans, EachWritesItsTraceIntoItsOwnFolder) {
  const Profile profile = profile_of({1000, 20});
  const auto directory =
      std::filesystem::path(::testing::TempDir()) / fmt::format("commtune_turns_test_{}", ::getpid());
  std::vector<PlannedRun> plans;
  for (const std::uint64_t seed : {1U, 2U}) {
    plans.push_back({random_plan(seed, profile, 2, AllReduce{}), short_run()});
    plans.back().options.trace_directory = directory / std::to_string(seed);
    plans.back().options.trace_steps = 2;  // of two turns
  }
  take_turns(plans, profile, 2, 2);
  for (const char* const folder : {"1", "2"}) {
    std::ifstream file(directory / folder / "all_ranks.json");
    const nlohmann::json trace = nlohmann::json::parse(file);
    std::set<int> iterations;
    for (const auto& event : trace.at("traceEvents")) {
      if (event.at("ph") == "X" && event.at("args").contains("iteration"))
        iterations.insert(event.at("args").at("iteration").get<int>());
    }
    EXPECT_EQ(iterations, (std::set<int>{0, 1}));
  }
  std::filesystem::remove_all(directory);
}

TEST(RunPlans, NeedAsManyIterationsAsRounds) {
  const Profile profile = profile_of({8});
  const std::vector<PlannedRun> plans = {{random_plan(1, profile, 1, AllReduce{}), short_run()}};
  EXPECT_THROW(take_turns(plans, profile, 1, 3), Error);
}

// ---- Plans that only rank 0 knows, one after the other ----

/// What was heard on a rank, by the plan's number.
struct SourceHeard {
  std::map<std::size_t, RunReport> reports;
  std::map<std::size_t, std::string> refusals;
};

PlanSource source_of(SourceHeard& heard, int workers) {
  PlanSource source;
  source.workers = workers;
  source.timeout = short_run().timeout;
  source.chunk = short_run().chunk;
  source.finished = [&heard](std::size_t plan, RunReport report) { heard.reports[plan] = std::move(report); };
  source.refused = [&heard](std::size_t plan, const Refusal& refusal) {
    heard.refusals[plan] = refusal.text;
  };
  return source;
}

/// Hands out the plans on rank 0; the other ranks have no source at all.
std::vector<SourceHeard> run_as_they_come(const std::vector<PlannedRun>& plans, const Profile& profile,
                                          int workers, int ranks) {
  std::vector<SourceHeard> heard(static_cast<std::size_t>(ranks));
  on_ranks(ranks, [&](Transport& transport) {
    const int rank = transport.peers().rank;
    PlanSource source = source_of(heard[static_cast<std::size_t>(rank)], workers);
    std::size_t next = 0;
    if (rank == 0) {
      source.next = [&]() -> std::optional<PlannedRun> {
        // Everything that was asked for before has been answered.
        EXPECT_EQ(heard[0].reports.size() + heard[0].refusals.size(), next);
        return next < plans.size() ? std::optional(plans[next++]) : std::nullopt;
      };
    }
    run_plans(transport, source, profile);
  });
  return heard;
}

TEST(RunPlansOfASource, RunOneAfterTheOtherWhateverTheirRoads) {
  // 2 workers and 3 ranks behind them: dedicated servers of some, idle under the others.
  const Profile profile = profile_of({1000, 20, 3000});
  std::vector<PlannedRun> plans;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto roads = roads_for(2);
    plans.push_back({random_plan(seed, profile, 2, roads[seed % roads.size()]), short_run()});
    plans.back().options.iterations = 1 + static_cast<int>(seed) % 3;
  }
  const std::vector<SourceHeard> heard = run_as_they_come(plans, profile, 2, 5);
  ASSERT_EQ(heard[0].reports.size(), plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const RunReport& report = heard[0].reports.at(i);
    EXPECT_EQ(report.plan_digest, digest(plans[i].plan));
    EXPECT_EQ(report.iteration_seconds.size(), static_cast<std::size_t>(plans[i].options.iterations));
    EXPECT_EQ(report.check.tensors, 2U * 2U * 3U);
    EXPECT_EQ(report.ranks.size(), 5U);
  }
  for (const SourceHeard& each : heard) EXPECT_EQ(each.reports.size(), plans.size());
}

TEST(RunPlansOfASource, APlanThatIsRefusedEndsNoOther) {
  const Profile profile = profile_of({1000, 20});
  const auto plan = [&](const Road& road) { return random_plan(1, profile, 2, road); };
  std::vector<PlannedRun> plans(6, {plan(AllReduce{}), short_run()});
  plans[1].plan.messages.clear();
  plans[2].options.iterations = 0;
  plans[3].options.timeout = Seconds{99};
  plans[4].plan = plan(ParameterServer{2, Placement::kDedicated, Assignment::kEven});
  const std::vector<SourceHeard> heard = run_as_they_come(plans, profile, 2, 3);
  EXPECT_THAT(heard[0].refusals.at(1), HasSubstr("no message carries tensor 0"));
  EXPECT_THAT(heard[0].refusals.at(2), HasSubstr("iterations = 0: must be at least 1"));
  EXPECT_THAT(heard[0].refusals.at(3), HasSubstr("chunk and device of a plan: must be its session's"));
  EXPECT_THAT(heard[0].refusals.at(4),
              HasSubstr("ranks = 3: the plan needs 4, 2 workers and 2 dedicated servers"));
  for (const SourceHeard& each : heard) {
    EXPECT_TRUE(each.reports.contains(0));
    EXPECT_TRUE(each.reports.contains(5));
    EXPECT_EQ(each.reports.size(), 2U);
  }
  EXPECT_EQ(heard[1].refusals.size(), 2U);  // those of rank 0's own mistakes reach nobody else
}

TEST(RunPlansOfASource, ASourceThatFailsEndsAllRanks) {
  const Profile profile = profile_of({8});
  SourceHeard heard;
  try {
    on_ranks(3, [&](Transport& transport) {
      PlanSource source = source_of(heard, 2);
      if (transport.peers().rank == 0)
        source.next = []() -> std::optional<PlannedRun> { throw Error(ErrorCode::kInterrupted, "stop"); };
      run_plans(transport, source, profile);
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
  }
}

TEST(RunPlansOfASource, ATraceIsWrittenWhereAPlanAsksForIt) {
  const Profile profile = profile_of({1000, 20});
  const auto directory =
      std::filesystem::path(::testing::TempDir()) / fmt::format("commtune_source_test_{}", ::getpid());
  const ParameterServer servers{2, Placement::kColocated, Assignment::kEven};
  std::vector<PlannedRun> plans = {{random_plan(1, profile, 2, AllReduce{}), short_run()},
                                   {random_plan(2, profile, 2, servers), short_run()}};
  plans[1].options.trace_directory = directory;
  const std::vector<SourceHeard> heard = run_as_they_come(plans, profile, 2, 3);
  EXPECT_EQ(heard[0].reports.at(0).ranks[0].trace, "");
  EXPECT_TRUE(std::filesystem::is_regular_file(directory / "all_ranks.json"));
  std::ifstream file(directory / "rank1.json");
  const std::string trace{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(trace, HasSubstr("\"server"));  // what its server did
  std::filesystem::remove_all(directory);
}

TEST(RunOptions, RefusesWhatMakesNoSense) {
  RunOptions options;
  options.iterations = 0;
  EXPECT_THROW(options.check(), Error);
  options = {};
  options.chunk = Bytes{3};
  EXPECT_THROW(options.check(), Error);
}

}  // namespace
}  // namespace commtune::tests
