#include "tuner/methods/mg_wfbp.h"

#include "perfmodel/cost/stage_cost.h"
#include "tuner/messages.h"

namespace commtune::tuner {

namespace {

Plan fused_plan(const Planning& job, const RoadOption& option, const Groups& groups) {
  Plan plan = job.empty_plan(option.road);
  plan.messages = fused_messages(job.profile, groups);
  plan.priority = list_priorities(plan.messages.size());
  return plan;
}

}  // namespace

FusionJob fusion_job(const Planning& job) {
  FusionJob fusion;
  for (auto tensor = job.work.tensors.rbegin(); tensor != job.work.tensors.rend(); ++tensor) {
    fusion.ready.push_back(job.work.ready[tensor->layer]);
    fusion.bytes.push_back(tensor->bytes.count);
  }
  return fusion;
}

Plan mg_wfbp(const Planning& job, const RoadOption& option) {
  const LatencyLine line = mg_wfbp_line(option.cost.both.alone);
  return fused_plan(job, option, mg_wfbp_fusion(fusion_job(job), line.a, line.b));
}

Plan exact_fusion_plan(const Planning& job, const RoadOption& option) {
  const FusionCost cost{until_sent(option.cost), option.cost.both.alone};
  return fused_plan(job, option, exact_fusion(fusion_job(job), cost));
}

}  // namespace commtune::tuner
