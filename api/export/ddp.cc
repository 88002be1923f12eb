// PyTorch DistributedDataParallel. Its buckets are filled in the order in which gradients appear until the
// cap is reached; the first one is 1 MiB whatever the cap (torch/nn/parallel/distributed.py).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "api/export/shape.h"

namespace commtune::api {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

/// The cap that gives as many buckets as the plan has messages: DDP cannot say where a bucket ends.
double cap_mib(const PlanShape& shape, const Profile& profile) {
  const double total = static_cast<double>(profile.gradient_bytes().count) / kMiB;
  if (shape.sizes.size() <= 1) return std::max(1.0, std::ceil(total));
  const double rest = std::max(0.0, total - 1);
  return std::max(0.01, rest / static_cast<double>(shape.sizes.size() - 1));
}

}  // namespace

Exported export_ddp(const Plan& plan, const Profile& profile) {
  const PlanShape shape = shape_of(plan);
  Exported out{"ddp", {}, {}, {}};
  const std::string cap = fmt::format("{:.6g}", cap_mib(shape, profile));
  out.settings = {{"bucket_cap_mb", cap}, {"gradient_as_bucket_view", "True"}, {"static_graph", "True"}};
  out.text = fmt::format(
      "model = torch.nn.parallel.DistributedDataParallel(\n    model, bucket_cap_mb={}, "
      "gradient_as_bucket_view=True, static_graph=True)\n",
      cap);
  add_road_gaps(plan.road, "DDP", {}, out);
  if (shape.sizes.size() > 1)
    out.not_expressed.push_back(fmt::format(
        "bucket boundaries: one cap gives about {} buckets of equal size, the plan's {} messages are "
        "{} to {}; and DDP's first bucket is 1 MiB whatever the cap",
        shape.sizes.size(), shape.sizes.size(), format_size(shape.smallest), format_size(shape.largest)));
  add_common_gaps(shape, "DDP", out);
  return out;
}

}  // namespace commtune::api
