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
