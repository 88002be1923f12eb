#include "tuner/cast_answer.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "api/view/answer_json.h"
#include "perfmodel/base/error.h"
#include "perfmodel/cost/plan_cost.h"
#include "perfmodel/shipped_profiles.h"
#include "perfmodel/simulate/simulate.h"
#include "tests/tuner/testbed.h"
#include "tuner/explain.h"

namespace commtune::tuner {
namespace {

using ::testing::HasSubstr;

/// Casting costs as much as a byte on the link, adding as in float32.
Cluster casting_cluster() {
  Cluster cluster = made_cluster(4, 200e-6, 8e-9);
  cluster.casts[WireFormat::kBfloat16] = {{1e-9, 0}, {8e-9 / 20, 0}};
  return cluster;
}

TuneOptions cast_options(WireFormat wire = WireFormat::kBfloat16) {
  TuneOptions options;
  options.wire = wire;
  return options;
}

TEST(CastAnswer, RanksPlansOfTheProfilesOwnTensors) {
  const Profile profile = *shipped_profile("resnet50");
  const Cluster cluster = casting_cluster();
  const Answer answer = tune(profile, cluster, cast_options());
  EXPECT_EQ(answer.wire, WireFormat::kBfloat16);
  EXPECT_GT(answer.ranking.size(), 5U);
  const Workload work(profile, slowdown_of(cluster, 4));
  for (const Entry& entry : answer.ranking) {
    SCOPED_TRACE(entry.method);
    EXPECT_EQ(entry.plan.wire, WireFormat::kBfloat16);
    EXPECT_NO_THROW(check(entry.plan, profile));
    // What the search saw, on bytes of the wire, is what anybody predicts of the plan.
    const Prediction again = simulate(work, entry.plan, plan_cost(entry.plan, cluster));
    EXPECT_NEAR(again.iteration / entry.prediction.iteration, 1, 1e-9);
    EXPECT_NEAR(explain(profile, cluster, entry.plan).prediction.iteration / again.iteration, 1, 1e-9);
  }
}

/// ResNet-50's 102 MB take 8 ns/B: with half of the bytes less stays exposed, although casting costs.
TEST(CastAnswer, SendsHalfTheBytesInLessTime) {
  const Profile profile = *shipped_profile("vgg16");
  const Answer plain = tune(profile, casting_cluster());
  const Answer cast = tune(profile, casting_cluster(), cast_options());
  const Seconds exposed = plain.ranking.front().prediction.exposed;
  EXPECT_LT(cast.ranking.front().prediction.exposed, exposed * 0.75);
  EXPECT_GT(cast.ranking.front().prediction.exposed, exposed * 0.4);
}

TEST(CastAnswer, StandsBesideNoBound) {
  const Answer answer = tune(*shipped_profile("resnet50"), casting_cluster(), cast_options());
  EXPECT_TRUE(answer.bounds.empty());
  EXPECT_FALSE(answer.bound_low);
  const nlohmann::json json = api::to_json(answer);
  EXPECT_EQ(json.at("wire"), "bf16");
  EXPECT_TRUE(json.at("bound_seconds").is_null());
  EXPECT_TRUE(json.at("ranking").at(0).at("gap_ratio").is_null());
  EXPECT_THAT(json.at("ranking").at(0).at("road").get<std::string>(), HasSubstr("cast to bf16"));
  EXPECT_FALSE(api::to_json(tune(*shipped_profile("resnet50"), casting_cluster())).contains("wire"));
}

TEST(CastAnswer, NoPlanCastsUnasked) {
  const Answer answer = tune(*shipped_profile("resnet50"), casting_cluster());
  for (const Entry& entry : answer.ranking) EXPECT_EQ(entry.plan.wire, WireFormat::kAsIs) << entry.method;
}

TEST(CastAnswer, IsUnknownWhereItWasNotProbed) {
  try {
    tune(*shipped_profile("resnet50"), casting_cluster(), cast_options(WireFormat::kFloat16));
    FAIL() << "fp16 was not probed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("unknown for fp16"));
  }
}

}  // namespace
}  // namespace commtune::tuner
