#include "store/jobs.h"

#include <set>

#include "tests/store/processes.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::error_of;
using tests::IsError;

class JobsTest : public ::testing::Test {
 protected:
  Store store_ = tests::memory_store();
  Jobs jobs_{store_};
  RowId lab_ = store_.put_cluster(tests::bare_cluster("lab"));
  RowId attic_ = store_.put_cluster(tests::bare_cluster("attic"));

  RowId probe(RowId cluster) { return jobs_.enqueue({.kind = "probe", .cluster = cluster}); }
};

TEST_F(JobsTest, AreReadBackAsTheyWere) {
  const RowId id = jobs_.enqueue(
      {.kind = "probe", .request = {{"budget", 8}}, .cluster = lab_, .requested_by = "scheduler"});
  const auto job = jobs_.find(id);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->kind, "probe");
  EXPECT_EQ(job->request, nlohmann::json({{"budget", 8}}));
  EXPECT_EQ(job->cluster, lab_);
  EXPECT_EQ(job->requested_by, "scheduler");
  EXPECT_EQ(job->state, JobState::kQueued);
  EXPECT_FALSE(job->started);
  EXPECT_TRUE(job->result.is_null());
  EXPECT_EQ(job->origin.version, "0.1.0");
  EXPECT_FALSE(jobs_.find(99));
}

TEST_F(JobsTest, GoThroughTheirLife) {
  const RowId id = probe(lab_);
  const auto taken = jobs_.take_next("service pid 7");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->id, id);
  EXPECT_EQ(taken->state, JobState::kRunning);
  EXPECT_EQ(taken->owner, "service pid 7");
  EXPECT_TRUE(taken->started);
  jobs_.report(id, 0.5, "links");
  EXPECT_EQ(jobs_.find(id)->progress, 0.5);
  EXPECT_EQ(jobs_.find(id)->stage, "links");
  jobs_.finish(id, JobState::kComplete, {{"fit", 3}});
  const auto done = jobs_.find(id);
  EXPECT_EQ(done->state, JobState::kComplete);
  EXPECT_EQ(done->progress, 1);
  EXPECT_EQ(done->result, nlohmann::json({{"fit", 3}}));
  EXPECT_TRUE(done->ended);
  EXPECT_FALSE(jobs_.take_next("service pid 7"));
}

TEST_F(JobsTest, OneRunsPerClusterInTheOrderAskedFor) {
  const RowId first = probe(lab_);
  const RowId second = probe(lab_);
  const RowId elsewhere = probe(attic_);
  const RowId nowhere = jobs_.enqueue({.kind = "tune"});
  const RowId nowhere_too = jobs_.enqueue({.kind = "tune"});
  EXPECT_EQ(jobs_.take_next("a")->id, first);
  EXPECT_EQ(jobs_.take_next("a")->id, elsewhere);
  EXPECT_EQ(jobs_.take_next("b")->id, nowhere);
  EXPECT_EQ(jobs_.take_next("b")->id, nowhere_too);
  EXPECT_FALSE(jobs_.take_next("a"));
  jobs_.finish(first, JobState::kFailed, nullptr, "host beta does not answer");
  EXPECT_EQ(jobs_.find(first)->error, "host beta does not answer");
  EXPECT_EQ(jobs_.take_next("a")->id, second);
}

TEST_F(JobsTest, AskedForTwiceWithOneKeyAreOne) {
  const NewJob job{.kind = "probe", .request = {{"budget", 8}}, .cluster = lab_, .idempotency_key = "k1"};
  const RowId id = jobs_.enqueue(job);
  EXPECT_EQ(jobs_.enqueue(job), id);
  NewJob other = job;
  other.request = {{"budget", 9}};
  EXPECT_THAT(error_of([&] { jobs_.enqueue(other); }),
              IsError(ErrorCode::kConflict, "was asked for something else"));
  EXPECT_EQ(jobs_.list().rows.size(), 1U);
}

TEST_F(JobsTest, AreCancelledAtOnceWhileQueuedAndToldSoWhileRunning) {
  const RowId first = probe(lab_);
  const RowId second = probe(lab_);
  jobs_.take_next("a");
  EXPECT_EQ(jobs_.request_cancel(second), JobState::kCancelled);
  EXPECT_FALSE(jobs_.cancel_requested(first));
  EXPECT_EQ(jobs_.request_cancel(first), JobState::kRunning);
  EXPECT_TRUE(jobs_.cancel_requested(first));
  jobs_.finish(first, JobState::kCancelled);
  EXPECT_EQ(jobs_.request_cancel(first), JobState::kCancelled);
  EXPECT_FALSE(jobs_.take_next("a"));
}

TEST_F(JobsTest, OfAProcessThatIsGoneAreInterruptedAndMayBeQueuedAgain) {
  const RowId lost = probe(lab_);
  const RowId fine = probe(attic_);
  jobs_.take_next("dead");
  jobs_.take_next("alive");
  const auto interrupted =
      jobs_.interrupt_abandoned([](const std::string& owner) { return owner != "alive"; });
  EXPECT_EQ(interrupted, std::vector<RowId>{lost});
  EXPECT_EQ(jobs_.find(lost)->state, JobState::kInterrupted);
  EXPECT_EQ(jobs_.find(fine)->state, JobState::kRunning);
  jobs_.requeue(lost);
  const auto again = jobs_.take_next("alive");
  EXPECT_EQ(again->id, lost);
  EXPECT_EQ(again->attempts, 2);
  EXPECT_EQ(again->error, "");
}

TEST_F(JobsTest, KeepALog) {
  const RowId id = probe(lab_);
  for (const char* line : {"one", "two", "three"}) {
    jobs_.append_log(id, line);
  }
  const auto first = jobs_.log(id, {.limit = 2});
  ASSERT_EQ(first.rows.size(), 2U);
  EXPECT_EQ(first.rows[0].text, "one");
  ASSERT_TRUE(first.next);
  EXPECT_EQ(jobs_.log(id, {.limit = 2, .after = *first.next}).rows.at(0).text, "three");
}

TEST_F(JobsTest, RefuseWhatIsOutOfOrder) {
  const RowId id = probe(lab_);
  EXPECT_THAT(error_of([&] { jobs_.report(id, 0.5, ""); }),
              IsError(ErrorCode::kConflict, "is not running: it is queued"));
  EXPECT_THAT(error_of([&] { jobs_.finish(id, JobState::kComplete); }),
              IsError(ErrorCode::kConflict, "is not running"));
  EXPECT_THAT(error_of([&] { jobs_.requeue(id); }), IsError(ErrorCode::kConflict, "it is queued"));
  jobs_.take_next("a");
  EXPECT_THAT(error_of([&] { jobs_.report(id, 1.5, ""); }), IsError(ErrorCode::kBadInput, "progress = 1.5"));
  EXPECT_THAT(error_of([&] { jobs_.finish(id, JobState::kQueued); }),
              IsError(ErrorCode::kBadInput, "state = queued"));
  EXPECT_THAT(error_of([&] { jobs_.enqueue({}); }), IsError(ErrorCode::kBadInput, "job.kind"));
  EXPECT_THAT(error_of([&] { jobs_.enqueue({.kind = "probe", .cluster = 99}); }),
              IsError(ErrorCode::kNotFound, "cluster 99"));
  EXPECT_THAT(error_of([&] { jobs_.append_log(99, "x"); }), IsError(ErrorCode::kNotFound, "job 99"));
  EXPECT_THAT(error_of([&] { jobs_.request_cancel(99); }), IsError(ErrorCode::kNotFound, "job 99"));
}

TEST(Jobs, AreEachTakenByOneOfSeveralProcesses) {
  const tests::TempFolder folder;
  const auto path = folder / "store.db";
  constexpr int kJobs = 40;
  {
    Store store = Store::open(path);
    store.atomically([&] {
      for (int i = 0; i < kJobs; ++i) {
        Jobs(store).enqueue({.kind = "tune"});
      }
    });
  }
  const auto take_all = [&](int pipe) {
    Store store = Store::open(path);
    while (const auto job = Jobs(store).take_next("x")) {
      tests::write_number(pipe, job->id);
    }
  };
  const tests::ChildProcess one(take_all);
  const tests::ChildProcess two(take_all);
  std::multiset<std::int64_t> taken;
  std::int64_t id = 0;
  for (const auto* child : {&one, &two}) {
    while (child->read_number(id)) {
      taken.insert(id);
    }
  }
  EXPECT_EQ(taken.size(), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(std::set<std::int64_t>(taken.begin(), taken.end()).size(), static_cast<std::size_t>(kJobs));
}

}  // namespace
}  // namespace commtune
