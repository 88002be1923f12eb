#include "tuner/methods/bsp.h"

#include <utility>

#include "tuner/messages.h"
#include "tuner/methods/wfbp.h"
#include "tuner/server_keys.h"

namespace commtune::tuner {

Plan bsp(const Planning& job, const RoadOption& option) {
  Plan plan = job.empty_plan(option.road);
  const std::size_t tensors = job.profile.tensor_count();
  if (tensors > 0) plan.messages = fused_messages(job.profile, std::vector<std::size_t>{tensors});
  if (architecture_of(option.road) == Architecture::kParameterServer) {
    plan.messages = cut_messages(std::move(plan.messages), kServerPartition, element_size(job.profile.type));
    plan.credit = kUnlimited;
    if (takes_messages_whole(option.road))
      plan.server = byteps_servers_of_buffer(plan.messages.size(), whole_message_servers(option.road));
  }
  plan.priority = list_priorities(plan.messages.size());
  plan.release = Release::kBackward;
  return plan;
}

}  // namespace commtune::tuner
