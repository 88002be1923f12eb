// PyTorch DistributedDataParallel (torch/nn/parallel/distributed.py). Its buckets are filled in the order in
// which gradients appeared in the first iterations, each until its cap is reached: since 2.13 a cap for each
// (bucket_cap_mb_list), before that one for all.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/export/ddp_buckets.h"
#include "api/export/shape.h"
#include "api/export/single_cap.h"

namespace commtune::api {
namespace {

/// Buckets, the setting that makes them, and what is known of their iteration.
struct Buckets {
  BucketGroups groups;
  std::string setting;  ///< in Python
  std::optional<Seconds> predicted = {};
  bool longer = false;  ///< than the plan's messages, which end inside layers
};

BucketGroups with_a_cap(const Profile& profile, Bytes cap) { return groups_by_cap(profile, cap, cap); }

/// Of releases of before mid-2024.
BucketGroups with_a_small_first(const Profile& profile, Bytes cap) {
  return groups_by_cap(profile, 1_MiB, cap);
}

/// The plan's own messages as a list of caps, where they are buckets.
std::optional<Buckets> plan_as_list(const Plan& plan, const Profile& profile, const PredictedTime& predict) {
  const std::optional<BucketGroups> messages = consecutive_groups(plan, profile);
  if (!messages) return std::nullopt;
  BucketGroups groups = with_whole_layers(profile, *messages);
  const bool longer = groups != *messages;
  const std::optional<Seconds> time = predicted_time(plan, profile, groups, predict);
  std::string caps = fmt::format("[{}]", fmt::join(cap_list(profile, groups), ", "));
  return Buckets{std::move(groups), std::move(caps), time, longer};
}

/// DDP would run the plan's groups, but they were chosen for what it does not have (a barrier per layer,
/// servers), and the single cap is better.
bool is_beaten(const Buckets& list, const SingleCap& single) {
  return list.predicted && single.predicted && *single.predicted < *list.predicted;
}

std::string python_call(const std::string& setting, const std::string& value) {
  return fmt::format(
      "model = torch.nn.parallel.DistributedDataParallel(\n    model, {}={}, gradient_as_bucket_view=True, "
      "static_graph=True)\n",
      setting, value);
}

std::string as_comment(const std::string& text) {
  std::string out = "# ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += "# ";
  }
  return out;
}

void add_setting(const std::string& name, const std::string& value, const std::optional<Seconds>& predicted,
                 Exported& out) {
  out.settings.emplace_back(name, value);
  if (predicted) out.predicted.emplace_back(name, *predicted);
}

void add_fixed_settings(Exported& out) {
  out.settings.emplace_back("gradient_as_bucket_view", "True");
  out.settings.emplace_back("static_graph", "True");
}

void add_list_gaps(const Plan& plan, const Buckets& list, Exported& out) {
  if (list.groups.size() > 1)
    out.not_expressed.emplace_back(
        "the first two iterations (the first one without static_graph): DDP fills its buckets in the order "
        "of the model's definition then, and in the order in which gradients appeared after that; with "
        "find_unused_parameters and without static_graph never, so leave that alone");
  if (list.longer)
    out.not_expressed.emplace_back(
        "messages that end inside a layer: their buckets end with that layer, since PyTorch decides which of "
        "its gradients appear first");
  add_order_gap(plan, "DDP", out);
}

void add_single_gaps(const Plan& plan, const Profile& profile, const SingleCap& single,
                     const PredictedTime& predict, Exported& out) {
  const BucketGroups older = with_a_small_first(profile, single.cap);
  if (older != single.groups)
    out.not_expressed.push_back(
        fmt::format("bucket_cap_mb for releases of before mid-2024: their first bucket is 1 MiB whatever the "
                    "cap{}",
                    prediction_text(predicted_time(plan, profile, older, predict))));
}

}  // namespace

Exported export_ddp(const Plan& plan, const Profile& profile, const ExportPlace& place) {
  const PredictedTime& predict = place.predict;
  const PlanShape shape = shape_of(plan);
  Exported out{"ddp", {}, {}, {}};
  const SingleCap single = best_single_cap(plan, profile, with_a_cap, predict);
  const std::string cap = one_cap(profile, single.groups, single.cap);
  const std::optional<Buckets> list = plan_as_list(plan, profile, predict);
  const bool as_planned = list && (plan.barrier == Barrier::kFull || !is_beaten(*list, single));
  const std::string one = python_call("bucket_cap_mb", cap);
  if (as_planned) {
    add_setting("bucket_cap_mb_list", list->setting, list->predicted, out);
    out.text =
        fmt::format("# PyTorch 2.13 and newer{}\n{}# older ones: {}\n{}", prediction_text(list->predicted),
                    python_call("bucket_cap_mb_list", list->setting), describe(single), as_comment(one));
    add_list_gaps(plan, *list, out);
  } else {
    out.text = fmt::format("# {}\n{}", describe(single), one);
    out.not_expressed.push_back(fmt::format(
        "the plan's {} messages of {} to {}: {}", shape.sizes.size(), format_size(shape.smallest),
        format_size(shape.largest),
        list ? "DDP waits for all gradients, and is faster with equal buckets then"
             : "a bucket is a run of whole tensors in the order in which their gradients appear"));
  }
  add_setting("bucket_cap_mb", cap, single.predicted, out);
  add_fixed_settings(out);
  add_road_gaps(plan.road, "DDP", {}, out);
  add_single_gaps(plan, profile, single, predict, out);
  add_common_gaps(shape, "DDP", out);
  return out;
}

Exported export_ddp_single(const Plan& plan, const Profile& profile, const ExportPlace& place) {
  Exported out{"ddp-single", {}, {}, {}};
  const SingleCap single = best_single_cap(plan, profile, with_a_cap, place.predict);
  const SingleCap older = best_single_cap(plan, profile, with_a_small_first, place.predict);
  const std::string cap = one_cap(profile, single.groups, single.cap);
  const std::string older_cap = one_cap(profile, older.groups, older.cap);
  add_setting("bucket_cap_mb", cap, single.predicted, out);
  add_fixed_settings(out);
  out.text = fmt::format(
      "# {}\n{}# releases of before mid-2024, whose first bucket is 1 MiB whatever the cap{}:\n{}",
      describe(single), python_call("bucket_cap_mb", cap), prediction_text(older.predicted),
      as_comment(python_call("bucket_cap_mb", older_cap)));
  add_single_cap_gaps(plan, profile, single, "DDP", out);
  add_order_gap(plan, "DDP", out);
  add_road_gaps(plan.road, "DDP", {}, out);
  add_common_gaps(shape_of(plan), "DDP", out);
  return out;
}

}  // namespace commtune::api
