#include "tuner/methods/us_byte.h"

#include "perfmodel/cost/stage_cost.h"
#include "tuner/methods/mg_wfbp.h"
#include "tuner/methods/two_phase.h"

namespace commtune::tuner {

Plan us_byte(const Planning& job, const RoadOption& option) {
  const FusionCost cost{until_sent(option.cost), option.cost.both.alone};
  const BlockSplit blocks(job, cost, exact_fusion(fusion_job(job), cost));
  return best_two_phase_plan(job, option, blocks, Bytes{0});
}

}  // namespace commtune::tuner
