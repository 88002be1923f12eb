// DeepSpeed's ZeRO (deepspeed/runtime/zero/config.py, stage_1_and_2.py). Bucket sizes are numbers of
// elements. With overlap_comm a bucket is reduced as soon as the next gradient would not fit into it, while
// the backward pass goes on; parameters are gathered after the optimizer's step.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "api/export/ddp_buckets.h"
#include "api/export/shape.h"
#include "api/export/single_cap.h"

namespace commtune::api {
namespace {

constexpr std::uint64_t kDefaultBucket = 500'000'000;  // elements

}  // namespace

Exported export_deepspeed(const Plan& plan, const Profile& profile, const ExportPlace& place) {
  Exported out{"deepspeed", {}, {}, {}};
  const SingleCap single = best_single_cap(plan, profile, groups_within, place.predict);
  const std::uint64_t element = element_size(profile.type).count;
  const std::uint64_t elements = single.cap.count / element;
  // Nothing computes beside the gather of parameters, so it is best not divided, up to DeepSpeed's own
  // default.
  const std::uint64_t gathered = std::min(profile.gradient_bytes().count / element, kDefaultBucket);
  // Without reduce_scatter the gradients of a bucket are all-reduced as one, which is what a plan speaks of.
  const nlohmann::ordered_json zero = {{"stage", 1},
                                       {"overlap_comm", true},
                                       {"contiguous_gradients", true},
                                       {"reduce_scatter", false},
                                       {"reduce_bucket_size", elements},
                                       {"allgather_bucket_size", gathered}};
  for (const auto& [name, value] : zero.items())
    out.settings.emplace_back("zero_optimization." + name, value.dump());
  out.text = nlohmann::ordered_json{{"zero_optimization", zero}}.dump(2) + "\n";
  if (single.predicted) out.predicted.emplace_back("zero_optimization.reduce_bucket_size", *single.predicted);
  add_single_cap_gaps(plan, profile, single, "DeepSpeed", out);
  add_order_gap(plan, "DeepSpeed", out);
  out.not_expressed.emplace_back(
      "ZeRO gathers the parameters of other ranks after the optimizer's step, allgather_bucket_size "
      "elements at a time: that is more traffic than the plan has, and not in the predicted time");
  out.not_expressed.emplace_back(
      "stages 2 and 3 shard more than the optimizer's state; their buckets of gradients are the same, "
      "stage 3 gathers parameters during both passes besides");
  add_road_gaps(plan.road, "DeepSpeed", {}, out);
  add_common_gaps(shape_of(plan), "DeepSpeed", out);
  return out;
}

}  // namespace commtune::api
