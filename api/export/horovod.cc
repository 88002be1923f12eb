// Horovod: what is ready at the end of a cycle is fused up to the threshold (docs/tensor-fusion.rst). Its
// defaults are 128 MiB and 1 ms.

#include <fmt/format.h>

#include <algorithm>

#include "api/export/shape.h"

namespace commtune::api {
namespace {

/// The time in which gradients of one message of the plan's mean size appear, at most 50 ms: a longer cycle
/// only delays, a shorter one sends smaller messages than planned.
double cycle_milliseconds(const PlanShape& shape, const Profile& profile) {
  const double backward = profile.backward().count() * 1e3;
  return std::clamp(backward / static_cast<double>(std::max<std::size_t>(1, shape.sizes.size())) / 2, 0.1,
                    50.0);
}

}  // namespace

Exported export_horovod(const Plan& plan, const Profile& profile, const ExportPlace& /*place*/) {
  const PlanShape shape = shape_of(plan);
  Exported out{"horovod", {}, {}, {}};
  // 0 turns fusion off.
  const std::uint64_t threshold = shape.fused == 0 ? 0 : shape.largest.count;
  const bool hierarchical = plan.road == Road{AllReduce{Collective::kHierarchical}};
  set_variable(out, "HOROVOD_FUSION_THRESHOLD", std::to_string(threshold));
  set_variable(out, "HOROVOD_CYCLE_TIME", fmt::format("{:.3g}", cycle_milliseconds(shape, profile)));
  set_variable(out, "HOROVOD_HIERARCHICAL_ALLREDUCE", hierarchical ? "1" : "0");
  out.text = shell_exports(out.settings);
  add_road_gaps(plan.road, "Horovod", Collective::kHierarchical, out);
  if (shape.fused > 0)
    out.not_expressed.push_back(fmt::format(
        "message boundaries: Horovod fuses what is ready when a cycle ends, up to {}; the plan has {} "
        "messages of {} to {}",
        format_size(shape.largest), shape.sizes.size(), format_size(shape.smallest),
        format_size(shape.largest)));
  add_common_gaps(shape, "Horovod", out);
  return out;
}

}  // namespace commtune::api
