// Megatron-LM's DistributedDataParallel (megatron/core/distributed/param_and_grad_buffer.py): from the last
// parameter on, a bucket is closed by the parameter with which it has --ddp-bucket-size elements. With
// --overlap-grad-reduce it is all-reduced as soon as its gradients exist; without, all of them are one
// bucket.

#include <fmt/format.h>

#include "api/export/ddp_buckets.h"
#include "api/export/shape.h"
#include "api/export/single_cap.h"

namespace commtune::api {
namespace {

BucketGroups megatron_groups(const Profile& profile, Bytes cap) { return groups_by_cap(profile, cap, cap); }

}  // namespace

Exported export_megatron(const Plan& plan, const Profile& profile, const ExportPlace& place) {
  Exported out{"megatron", {}, {}, {}};
  const SingleCap single = best_single_cap(plan, profile, megatron_groups, place.predict);
  const std::uint64_t element = element_size(profile.type).count;
  const std::string elements = std::to_string((single.cap.count + element - 1) / element);
  out.settings.emplace_back("--overlap-grad-reduce", "");
  out.settings.emplace_back("--ddp-bucket-size", elements);
  out.text = fmt::format("--overlap-grad-reduce --ddp-bucket-size {}\n", elements);
  if (single.predicted) out.predicted.emplace_back("--ddp-bucket-size", *single.predicted);
  add_single_cap_gaps(plan, profile, single, "Megatron-LM", out);
  add_order_gap(plan, "Megatron-LM", out);
  out.not_expressed.emplace_back(
      "model parallelism: the plan has all parameters on each worker; with tensor or pipeline parallelism "
      "a rank has a part of them, and only the first pipeline stage has buckets");
  out.not_expressed.emplace_back(
      "with --use-distributed-optimizer buckets are padded and reduce-scattered, and parameters gathered "
      "after the optimizer's step; the predicted time is without");
  if (profile.type != DataType::kFloat32)
    out.not_expressed.push_back(fmt::format(
        "the plan's gradients are {}; with --accumulate-allreduce-grads-in-fp32, which --bf16 sets, "
        "they travel as float32: twice the bytes",
        to_string(profile.type)));
  add_road_gaps(plan.road, "Megatron-LM", {}, out);
  add_common_gaps(shape_of(plan), "Megatron-LM", out);
  return out;
}

}  // namespace commtune::api
