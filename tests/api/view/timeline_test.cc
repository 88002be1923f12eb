#include "api/view/timeline.h"

#include <gtest/gtest.h>

#include "perfmodel/shipped_profiles.h"
#include "tests/tuner/testbed.h"
#include "tuner/methods/wfbp.h"
#include "tuner/planning.h"

namespace commtune::api {
namespace {

PlanView wfbp_view() {
  const Profile profile = *shipped_profile("resnet50");
  const Cluster cluster = tuner::made_cluster(4, 200e-6, 8e-9);
  const tuner::Planning job(profile, cluster, 4, {AllReduce{}});
  return {{}, tuner::wfbp(job, job.roads[0]), profile, cluster, true};
}

TEST(ChromeTrace, HasEveryLayerAndMessage) {
  const PlanView view = wfbp_view();
  const nlohmann::json trace = timeline_to_trace(view);
  std::size_t spans = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    ++spans;
  }
  EXPECT_EQ(spans, 2 * view.profile.layers.size() + 2 * view.plan.messages.size());
  EXPECT_EQ(trace["metadata"]["model"], "resnet50");
}

/// Pushed tensor by tensor to dedicated servers, all of it back in one pull.
PlanView pulled_view() {
  PlanView view = wfbp_view();
  view.plan.road = ParameterServer{2, Placement::kDedicated};
  view.plan.pulls.emplace_back();
  for (std::uint32_t message = 0; message < view.plan.messages.size(); ++message) {
    const Message& pushed = view.plan.messages[message];
    view.plan.pulls[0].pieces.insert(view.plan.pulls[0].pieces.end(), pushed.pieces.begin(),
                                     pushed.pieces.end());
    view.plan.sequence.push_back({message, Stage::kReduce});
  }
  view.plan.sequence.push_back({0, Stage::kDistribute});
  check(view.plan, view.profile);
  return view;
}

TEST(Timeline, ShowsWhatComesBackAsOne) {
  const PlanView view = pulled_view();
  const nlohmann::json timeline = timeline_to_json(view), messages = messages_to_json(view);
  ASSERT_EQ(timeline["pulls"].size(), 1U);
  const nlohmann::json& pull = timeline["pulls"][0];
  EXPECT_EQ(pull["bytes"], view.profile.gradient_bytes().count);
  EXPECT_EQ(pull["distribute"]["start_seconds"], pull["released_seconds"]);
  EXPECT_EQ(messages["pulls"][0]["pieces"].size(), view.profile.tensor_count());
  EXPECT_TRUE(timeline_to_json(wfbp_view())["pulls"].empty());
  EXPECT_TRUE(messages_to_json(wfbp_view())["pulls"].empty());
  std::size_t back = 0;
  const nlohmann::json trace = timeline_to_trace(view);
  for (const auto& event : trace["traceEvents"]) back += event["ph"] == "X" && event["tid"] == 2 ? 1U : 0U;
  EXPECT_EQ(back, 1U);
}

TEST(Timeline, SaysWhatTheTraceDoes) {
  const PlanView view = wfbp_view();
  const nlohmann::json timeline = timeline_to_json(view);
  EXPECT_EQ(timeline["prediction"]["iteration_seconds"],
            timeline_to_trace(view)["metadata"]["predicted_seconds"]);
  EXPECT_EQ(timeline["messages"].size(), view.plan.messages.size());
  EXPECT_TRUE(timeline["plan"].is_null());
}

}  // namespace
}  // namespace commtune::api
