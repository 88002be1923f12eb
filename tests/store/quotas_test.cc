#include "store/quotas.h"

#include "store/jobs.h"
#include "store/stored_replies.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

constexpr TokenId kOne = 1, kOther = 2;

class QuotasTest : public ::testing::Test {
 protected:
  Store store_ = tests::memory_store();
  Quotas quotas_{store_};
  Jobs jobs_{store_};
  RowId lab_ = store_.put_cluster(tests::bare_cluster("lab"));

  RowId plan(std::optional<TokenId> token) {
    return store_.add_plan({.plan = tests::small_plan(),
                            .profile = store_.put_profile(tests::small_profile(), token),
                            .predicted = Seconds{0.012},
                            .token = token});
  }
  /// Profiles, plans and runs.
  std::vector<std::int64_t> counts(TokenId token) const {
    return {quotas_.count(Held::kProfiles, token), quotas_.count(Held::kPlans, token),
            quotas_.count(Held::kRuns, token)};
  }
};

using Counts = std::vector<std::int64_t>;

TEST_F(QuotasTest, CountWhatEachTokenHasStored) {
  const RowId first = plan(kOne);
  plan(kOne);
  plan(kNoToken);
  store_.add_run({.plan = first, .token = kOther}, {});
  store_.add_run({.plan = first, .token = kOther}, {});
  store_.add_run({.plan = first, .token = kStartToken}, {});
  EXPECT_EQ(counts(kOne), (Counts{1, 2, 0})) << "all plans are of one profile, which is stored once";
  EXPECT_EQ(counts(kOther), (Counts{0, 0, 2}));
  EXPECT_EQ(counts(kNoToken), (Counts{0, 1, 0}));
  EXPECT_EQ(counts(kStartToken), (Counts{0, 0, 1}));
}

TEST_F(QuotasTest, WhatCameFromNoClientIsNobodys) {
  const RowId id = plan({});
  store_.add_run({.plan = id}, {});
  jobs_.enqueue({.kind = "probe", .cluster = lab_});
  EXPECT_EQ(counts(kNoToken), (Counts{0, 0, 0}));
  EXPECT_EQ(quotas_.count(Held::kWaitingJobs, kNoToken), 0);
}

TEST_F(QuotasTest, PruningFreesThem) {
  store_.add_run({.plan = plan(kOne), .token = kOne}, {});
  plan(kOne);
  ASSERT_EQ(counts(kOne), (Counts{1, 2, 1}));
  store_.prune({.keep = 1});
  EXPECT_EQ(counts(kOne), (Counts{1, 2, 1}))
      << "the newest plan stays, and so does what the newest run is of";
  store_.prune({.keep = 0});
  EXPECT_EQ(counts(kOne), (Counts{0, 0, 0}));
}

TEST_F(QuotasTest, WhatIsUndoneIsNotCounted) {
  EXPECT_THROW(store_.atomically([&] {
    plan(kOne);
    throw Error(ErrorCode::kConflict, "something else failed");
  }),
               Error);
  EXPECT_EQ(counts(kOne), (Counts{0, 0, 0}));
}

TEST_F(QuotasTest, AJobIsCountedWhileItWaits) {
  const NewJob probe{.kind = "probe", .cluster = lab_, .token = kOne};
  const RowId first = jobs_.enqueue(probe), second = jobs_.enqueue(probe);
  EXPECT_EQ(quotas_.count(Held::kWaitingJobs, kOne), 2);
  jobs_.take_next("service");
  EXPECT_EQ(quotas_.count(Held::kWaitingJobs, kOne), 1);
  jobs_.request_cancel(second);
  EXPECT_EQ(quotas_.count(Held::kWaitingJobs, kOne), 0);
  jobs_.finish(first, JobState::kInterrupted);
  jobs_.requeue(first, kOther);
  EXPECT_EQ(quotas_.count(Held::kWaitingJobs, kOther), 1) << "it is of who wanted it again";
  EXPECT_EQ(quotas_.count(Held::kWaitingJobs, kOne), 0);
}

TEST_F(QuotasTest, AJobThatIsQueuedAgainStaysWhoseItWas) {
  const RowId id = jobs_.enqueue({.kind = "probe", .cluster = lab_, .token = kOne});
  jobs_.take_next("service");
  jobs_.finish(id, JobState::kInterrupted);
  jobs_.requeue(id);
  EXPECT_EQ(quotas_.count(Held::kWaitingJobs, kOne), 1);
}

TEST_F(QuotasTest, AnAnswerIsCountedWhileItIsKept) {
  StoredReplies answers(store_);
  const auto count = [&] { return quotas_.count(Held::kAnswers, kOne); };
  answers.claim({"first", "digest", kOne}, tests::noon());
  answers.claim({"first", "digest", kOne}, tests::noon());
  answers.claim({"second", "digest", kOne}, tests::noon());
  answers.claim({"nobody's", "digest"}, tests::noon());
  EXPECT_EQ(count(), 2);
  const Timestamp late = tests::noon() + std::chrono::hours(1);
  EXPECT_EQ(answers.claim({"first", "digest", kOne}, late).claim, Claim::kOurs) << "it was abandoned";
  EXPECT_EQ(count(), 2);
  answers.release("second");
  EXPECT_EQ(count(), 1);
  answers.answer("first", {});
  answers.forget(late);
  EXPECT_EQ(count(), 0);
}

}  // namespace
}  // namespace commtune
