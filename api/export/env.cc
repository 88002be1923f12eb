// All settings that frameworks read from the environment, for a job whose framework we do not know.

#include <fmt/format.h>

#include "api/export/shape.h"

namespace commtune::api {

Exported export_env(const Plan& plan, const Profile& profile, const ExportPlace& place) {
  const PlanShape shape = shape_of(plan);
  Exported out{"env", {}, {}, {}};
  set_variable(out, "COMMTUNE_PLAN_DIGEST", digest(plan));
  set_variable(out, "COMMTUNE_PLAN_METHOD", plan.method);
  const auto take = [&out](Exported other) {
    out.settings.insert(out.settings.end(), other.settings.begin(), other.settings.end());
    for (const std::string& gap : other.not_expressed) out.not_expressed.push_back(other.target + ": " + gap);
  };
  if (goes_through_servers(plan.road)) {
    take(export_byteps(plan, profile, place));
  } else {
    take(export_horovod(plan, profile, place));
    take(export_nccl(plan, profile, place));
  }
  out.text = shell_exports(out.settings);
  out.not_expressed.emplace_back(
      "DDP, FSDP2, DeepSpeed and Megatron-LM read no settings from the environment; see their targets");
  return out;
}

}  // namespace commtune::api
