#include "tuner/methods/wfbp.h"

#include <utility>

#include "tuner/messages.h"
#include "tuner/server_keys.h"

namespace commtune::tuner {

Plan wfbp(const Planning& job, const RoadOption& option) {
  Plan plan = job.empty_plan(option.road);
  plan.messages = tensor_messages(job.profile);
  if (architecture_of(option.road) == Architecture::kParameterServer) {
    plan.messages = cut_messages(std::move(plan.messages), kServerPartition, element_size(job.profile.type));
    plan.credit = kUnlimited;
    if (takes_messages_whole(option.road))
      plan.server = byteps_servers(job.keys, plan.messages, whole_message_servers(option.road));
  }
  plan.priority = list_priorities(plan.messages.size());
  return plan;
}

}  // namespace commtune::tuner
