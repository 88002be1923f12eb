#include "api/actions/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/question/models.h"
#include "api/question/plan_lookup.h"
#include "executor/base/new_file.h"
#include "perfmodel/base/error.h"
#include "tests/api/rest/made_lab.h"
#include "tests/store/support.h"

namespace commtune::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The made-up lab, whose plan 1 is for small_profile(), and what an action needs.
class FindJobsTest : public ::testing::Test {
 protected:
  FindJobsTest() { make_lab(store_, tests::small_profile()); }

  static Profile timed_again() {
    Profile profile = tests::small_profile();
    for (Layer& layer : profile.layers) layer.backward *= 3;
    return profile;
  }
  std::vector<PlannedJob> find(const std::string& plan, const std::string& model = {},
                               const std::vector<std::string>& methods = {}) {
    return find_jobs(context_, {plan, model, "lab"}, methods);
  }
  /// A plan file as a program of before there were layouts would have written it, or as one of now.
  std::filesystem::path written(Plan plan, bool with_layout) {
    if (!with_layout) plan.layout.clear();
    auto path = folder_ / "plan.json";
    write_file(path, commtune::to_json(plan).dump());
    return path;
  }
  Plan chosen() const { return store_.find_plan(1)->plan; }

  tests::TempFolder folder_;
  Settings settings_;
  Environment environment_;
  Store store_ = tests::memory_store();
  Cancellation cancellation_;
  std::vector<std::string> notes_;
  Context context_{settings_, environment_, store_, cancellation_,
                   Listener{{}, [this](std::string_view note) { notes_.emplace_back(note); }}};
};

TEST_F(FindJobsTest, AStoredPlanIsFoundByIdDigestAndAsTheLatest) {
  const std::string digest = commtune::digest(chosen());
  for (const std::string& name : {std::string("1"), std::string("latest"), digest, digest.substr(0, 4)}) {
    EXPECT_EQ(find(name).at(0).plan_id, 1) << name;
    EXPECT_EQ(look_up_plan(store_, name)->id, 1) << name;
  }
  EXPECT_FALSE(look_up_plan(store_, "77"));
  EXPECT_THAT(tests::error_of([&] { find("77"); }), tests::IsError(ErrorCode::kNotFound, "plan \"77\""));
}

TEST_F(FindJobsTest, AStoredPlanRunsWithTheTimesOfItsModelTimedAgain) {
  store_.put_profile(timed_again());
  const PlannedJob before = find("1").at(0);
  const PlannedJob job = find("1", commtune::digest(timed_again())).at(0);
  EXPECT_EQ(job.plan, before.plan);
  EXPECT_EQ(commtune::digest(job.profile), commtune::digest(timed_again()));
  EXPECT_GT(job.predicted, before.predicted);  // its backward pass lasts three times as long
  EXPECT_EQ(job.cluster, "lab");
  EXPECT_NO_THROW(check(job.plan, job.profile));
  // It is a row of its own, with the other profile; what was stored stays.
  EXPECT_NE(job.plan_id, 1);
  EXPECT_NE(store_.find_plan(job.plan_id)->profile, store_.find_plan(1)->profile);
  EXPECT_EQ(store_.find_plan(job.plan_id)->fit, store_.find_plan(1)->fit);
  // The layout names its newest profile.
  EXPECT_EQ(commtune::digest(find("1", before.plan.layout).at(0).profile), commtune::digest(timed_again()));
}

TEST_F(FindJobsTest, APlanOfBeforeThereWereLayoutsDoesToo) {
  store_.put_profile(timed_again());
  Plan old = chosen();
  old.layout.clear();
  const RowId id = store_.add_plan({.plan = old, .profile = store_.find_plan(1)->profile, .fit = 1});
  EXPECT_EQ(find(std::to_string(id)).at(0).plan, old);
  const PlannedJob job = find(std::to_string(id), commtune::digest(timed_again())).at(0);
  EXPECT_EQ(job.plan, chosen());
  EXPECT_NO_THROW(check(job.plan, job.profile));
  EXPECT_EQ(store_.find_plan(id)->digest, commtune::digest(old));
}

TEST_F(FindJobsTest, APlanFileRunsWithAProfileOfItsLayout) {
  const auto path = written(chosen(), false);
  EXPECT_EQ(find(path).at(0).plan.layout, "");
  const auto model = folder_ / "timed-again.json";
  write_file(model, commtune::to_json(timed_again()).dump());
  EXPECT_NO_THROW(check(find(path, model).at(0).plan, timed_again()));
}

TEST_F(FindJobsTest, APlanFileWhoseProfileIsNotKnownTakesTheNewestOfItsLayout) {
  Plan plan = chosen();
  plan.profile = "0123456789abcdef";
  const PlannedJob job = find(written(plan, true)).at(0);
  EXPECT_EQ(commtune::digest(job.profile), chosen().profile);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("another one of the same layout")));
  EXPECT_THAT(tests::error_of([&] { find(written(plan, false)); }),
              tests::IsError(ErrorCode::kNotFound, "name it with --model"));
}

TEST_F(FindJobsTest, AnotherLongestTransferThanWasProbedIsRefused) {
  RunRequest request{.job = find("1").at(0), .placing = {}, .options = {}};
  request.options.chunk = 256_KiB;
  EXPECT_THAT(
      tests::error_of([&] { run_jobs(context_, {request}); }),
      tests::IsError(ErrorCode::kBadInput,
                     "--chunk 256.0 KiB: cluster lab was probed with transfers of up to 60.0 KiB (assumed)"));
  EXPECT_EQ(request.chunk(), 256_KiB);
  request.options.chunk = {};
  EXPECT_EQ(request.chunk(), Bytes{0}) << "as the transport likes";
  request.job.traits = {.chunk = 1_MiB, .assumed = false};
  EXPECT_EQ(request.chunk(), 1_MiB);
}

TEST_F(FindJobsTest, AnotherLayoutIsRefused) {
  const auto other = store_.put_profile(scaled(tests::small_profile(), 0.5, 1));
  const std::string digest = store_.find_profile(other)->digest;
  EXPECT_THAT(tests::error_of([&] { find("1", digest); }),
              tests::IsError(ErrorCode::kBadInput, "plan 1 with model " + digest + ": layout"));
}

}  // namespace
}  // namespace commtune::api
