#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::error_of;
using tests::IsError;
using tests::memory_store;
using tests::stored_plan;

RunResult good_result() {
  return {.state = WorkState::kComplete,
          .iteration_seconds = {0.013, 0.012, 0.014},
          .median = Seconds{0.013},
          .low = Seconds{0.012},
          .high = Seconds{0.014},
          .error = "",
          .trace_path = "traces/rank0.json",
          .differences = {"kernel of alpha: 6.1 when it was fitted, 6.5 now"},
          .messages = {{{"started_seconds", 0.001}, {"reduced_seconds", 0.002}}}};
}

TEST(Runs, KeepWhatWasMeasuredWhereAndWithWhat) {
  Store store = memory_store();
  const RowId plan = stored_plan(store);
  const RowId cluster = store.put_cluster(tests::bare_cluster());
  const RowId id = store.start_run({.plan = plan,
                                    .cluster = cluster,
                                    .hosts = {{"alpha", 2}, {"beta", 2}},
                                    .versions = {{"Open MPI", "4.1.4"}},
                                    .settings = {{"iterations", 3}}});
  EXPECT_EQ(store.find_run(id)->state, WorkState::kRunning);
  store.finish_run(id, good_result());
  const auto row = store.find_run(id);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->plan, plan);
  EXPECT_EQ(row->cluster, cluster);
  EXPECT_EQ(row->cluster_name, "lab");
  EXPECT_EQ(row->method, "bsp-a2a");
  EXPECT_EQ(row->model, "small");
  EXPECT_EQ(row->workers, 4);
  EXPECT_EQ(row->state, WorkState::kComplete);
  EXPECT_EQ(row->iterations, 3);
  EXPECT_EQ(row->iteration_seconds, good_result().iteration_seconds);
  EXPECT_EQ(row->predicted, Seconds{0.012});
  EXPECT_EQ(row->median, Seconds{0.013});
  EXPECT_EQ(row->low, Seconds{0.012});
  EXPECT_EQ(row->high, Seconds{0.014});
  EXPECT_EQ(row->trace_path, "traces/rank0.json");
  EXPECT_EQ(row->differences, good_result().differences);
  EXPECT_EQ(row->hosts.at(1).name, "beta");
  EXPECT_EQ(row->versions.at("Open MPI"), "4.1.4");
  EXPECT_EQ(row->settings, nlohmann::json({{"iterations", 3}}));
  EXPECT_EQ(row->messages, good_result().messages);
  EXPECT_GT(row->ended, row->origin.created);
}

TEST(Runs, SayWhetherSomebodyAnswersForThem) {
  Store store = memory_store();
  const RowId plan = stored_plan(store);
  const RowId ours = store.add_run({.plan = plan}, good_result());
  const RowId anybodys = store.add_run({.plan = plan, .attested = false}, good_result());
  EXPECT_TRUE(store.find_run(ours)->attested);
  EXPECT_FALSE(store.find_run(anybodys)->attested);
  EXPECT_FALSE(store.runs().rows.at(0).attested);  // the newest first
}

TEST(Runs, SayWhatRan) {
  Store store = memory_store();
  const RowId plan = stored_plan(store);
  const RowId trained =
      store.add_run({.plan = plan, .settings = {{"workload", "training"}, {"iterations", 3}}}, good_result());
  store.add_run({.plan = plan}, good_result());
  EXPECT_EQ(store.find_run(trained)->workload, "training");
  EXPECT_EQ(store.runs().rows.at(0).workload, "") << "nobody said";
  EXPECT_EQ(store.runs().rows.at(1).workload, "training");
}

TEST(Runs, ThatNobodyCarriesOutAnyMoreAreInterrupted) {
  Store store = memory_store();
  const RowId plan = stored_plan(store);
  const RowId cluster = store.put_cluster(tests::bare_cluster());
  const RowId gone = store.start_run({.plan = plan, .owner = "gone"});
  const RowId here = store.start_run({.plan = plan, .owner = "here"});
  const RowId session = store.start_session({.cluster = cluster, .owner = "gone"});
  const auto is_gone = [](const std::string& owner) { return owner == "gone"; };
  const Abandoned ended = store.interrupt_abandoned(is_gone);
  EXPECT_EQ(ended.runs, std::vector<RowId>{gone});
  EXPECT_EQ(ended.sessions, std::vector<RowId>{session});
  EXPECT_EQ(store.find_run(gone)->state, WorkState::kInterrupted);
  EXPECT_EQ(store.find_run(gone)->error, "its process (gone) is gone");
  EXPECT_EQ(store.find_run(here)->state, WorkState::kRunning);
  EXPECT_EQ(store.find_session(session)->state, WorkState::kInterrupted);
  EXPECT_TRUE(store.interrupt_abandoned(is_gone).runs.empty());
  store.finish_run(here, good_result());
}

TEST(Runs, KeepWhatAFailedOneHadMeasured) {
  Store store = memory_store();
  const RowId id = store.add_run({.plan = stored_plan(store)},
                                 {.state = WorkState::kFailed,
                                  .iteration_seconds = {0.013},
                                  .error = "rank 3 (beta) does not answer: reduce of fc.weight"});
  const auto row = store.find_run(id);
  EXPECT_EQ(row->state, WorkState::kFailed);
  EXPECT_EQ(row->iteration_seconds, std::vector<double>{0.013});
  EXPECT_EQ(row->error, "rank 3 (beta) does not answer: reduce of fc.weight");
  EXPECT_FALSE(row->cluster);
}

TEST(Runs, AreNotOverwrittenOnceTheyEnded) {
  Store store = memory_store();
  const RowId id = store.add_run({.plan = stored_plan(store)}, good_result());
  EXPECT_THAT(error_of([&] { store.finish_run(id, {.state = WorkState::kFailed}); }),
              IsError(ErrorCode::kConflict, "has ended already: complete"));
  EXPECT_EQ(store.find_run(id)->iterations, 3);
}

TEST(Runs, RefuseWhatDoesNotExistOrCannotBe) {
  Store store = memory_store();
  EXPECT_THAT(error_of([&] { store.start_run({.plan = 3}); }), IsError(ErrorCode::kNotFound, "plan 3"));
  const RowId plan = stored_plan(store);
  EXPECT_THAT(error_of([&] { store.start_run({.plan = plan, .cluster = 8}); }),
              IsError(ErrorCode::kNotFound, "cluster 8"));
  EXPECT_THAT(error_of([&] { store.finish_run(5, good_result()); }), IsError(ErrorCode::kNotFound, "run 5"));
  RunResult negative = good_result();
  negative.iteration_seconds[1] = -0.1;
  EXPECT_THAT(error_of([&] { store.add_run({.plan = plan}, negative); }),
              IsError(ErrorCode::kBadInput, "iteration_seconds"));
  EXPECT_TRUE(store.runs().rows.empty());  // the start was undone with the rest
}

TEST(Runs, AreListedByPlanByClusterOrAltogether) {
  Store store = memory_store();
  const RowId first = stored_plan(store);
  const RowId second = stored_plan(store, "joint");
  const RowId cluster = store.put_cluster(tests::bare_cluster());
  store.add_run({.plan = first}, good_result());
  const RowId there = store.add_run({.plan = second, .cluster = cluster}, good_result());
  EXPECT_EQ(store.runs().rows.size(), 2U);
  ASSERT_EQ(store.runs(second).rows.size(), 1U);
  EXPECT_EQ(store.runs(second).rows[0].method, "joint");
  ASSERT_EQ(store.runs_on(cluster).rows.size(), 1U);
  EXPECT_EQ(store.runs_on(cluster).rows[0].id, there);
}

}  // namespace
}  // namespace commtune
