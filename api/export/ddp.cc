// PyTorch DistributedDataParallel (torch/nn/parallel/distributed.py). Its buckets are filled in the order in
// which gradients appeared in the first iterations, each until its cap is reached: since 2.13 a cap for each
// (bucket_cap_mb_list), before that one for all.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "api/export/ddp_buckets.h"
#include "api/export/shape.h"
#include "perfmodel/base/overloaded.h"
#include "tuner/messages.h"

namespace commtune::api {
namespace {

/// Buckets, the setting that makes them, and what is known of their iteration.
struct Buckets {
  BucketGroups groups;
  std::string setting;  ///< in Python
  std::optional<Seconds> predicted = {};
  Bytes cap{};  ///< where one holds for all
};

/// What DDP does with these buckets, as a plan: whole buckets one after the other, over the plan's own
/// all-reduce, or a ring where the plan has servers.
Plan ddp_plan(const Plan& plan, const Profile& profile, const BucketGroups& groups) {
  Plan out;
  out.model = plan.model;
  out.profile = plan.profile;
  out.layout = plan.layout;
  out.workers = plan.workers;
  out.road = match(
      plan.road, [](const AllReduce& all) { return Road{all}; },
      [](const ParameterServer&) { return Road{AllReduce{}}; });
  if (!goes_through_servers(plan.road)) out.library = plan.library;
  out.messages = tuner::fused_messages(profile, groups);
  out.priority = tuner::list_priorities(groups.size());
  return out;
}

std::optional<Seconds> predicted_time(const Plan& plan, const Profile& profile, const BucketGroups& groups,
                                      const PredictedTime& predict) {
  if (!predict) return std::nullopt;
  return predict(ddp_plan(plan, profile, groups));
}

/// Caps that divide the gradients into 1, 2, 3, ... buckets, and further apart from ten on.
std::vector<Bytes> caps_to_try(const Profile& profile) {
  const std::uint64_t total = profile.gradient_bytes().count;
  std::vector<Bytes> caps;
  for (std::size_t buckets = 1; buckets <= profile.tensor_count();
       buckets += std::max<std::size_t>(1, buckets / 10))
    caps.push_back(Bytes{(total + buckets - 1) / buckets});
  return caps;
}

/// The single cap with the least predicted time; without predictions the one that makes about as many buckets
/// as the plan has messages.
Buckets best_single_cap(const Plan& plan, const Profile& profile, const PredictedTime& predict) {
  const std::uint64_t total = profile.gradient_bytes().count;
  const Bytes as_many{(total + plan.messages.size() - 1) / plan.messages.size()};
  Buckets best{groups_by_cap(profile, as_many, as_many), {}, {}, as_many};
  best.predicted = predicted_time(plan, profile, best.groups, predict);
  std::set<BucketGroups> tried{best.groups};
  for (const Bytes cap : best.predicted ? caps_to_try(profile) : std::vector<Bytes>{}) {
    BucketGroups groups = groups_by_cap(profile, cap, cap);
    if (!tried.insert(groups).second) continue;
    const std::optional<Seconds> time = predicted_time(plan, profile, groups, predict);
    if (!time || *time >= *best.predicted) continue;
    best.groups = std::move(groups);
    best.predicted = time;
    best.cap = cap;
  }
  best.setting = one_cap(profile, best.groups, best.cap);
  return best;
}

/// The plan's own messages as a list of caps, where they are buckets.
std::optional<Buckets> plan_as_list(const Plan& plan, const Profile& profile, const PredictedTime& predict) {
  std::optional<BucketGroups> groups = consecutive_groups(plan, profile);
  if (!groups) return std::nullopt;
  const std::optional<Seconds> time = predicted_time(plan, profile, *groups, predict);
  std::string caps = fmt::format("[{}]", fmt::join(cap_list(profile, *groups), ", "));
  return Buckets{*std::move(groups), std::move(caps), time};
}

/// DDP would run the plan's groups, but they were chosen for what it does not have (a barrier per layer,
/// servers), and the single cap is better.
bool is_beaten(const Buckets& list, const Buckets& single) {
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

std::string prediction_text(const std::optional<Seconds>& time) {
  return time ? fmt::format(", {} an iteration predicted", format_time(*time)) : std::string();
}

std::string single_text(const Buckets& single) {
  return single.predicted ? "the best single cap" + prediction_text(single.predicted)
                          : "a single cap for as many buckets";
}

void add_setting(const std::string& name, const Buckets& buckets, Exported& out) {
  out.settings.emplace_back(name, buckets.setting);
  if (buckets.predicted) out.predicted.emplace_back(name, *buckets.predicted);
}

void add_list_gaps(const Plan& plan, const Profile& profile, const Buckets& list, Exported& out) {
  if (list.groups.size() > 1)
    out.not_expressed.emplace_back(
        "the first two iterations (the first one without static_graph): DDP fills its buckets in the order "
        "of the model's definition then, and in the order in which gradients appeared after that; with "
        "find_unused_parameters and without static_graph never, so leave that alone");
  if (splits_a_layer(profile, list.groups))
    out.not_expressed.emplace_back(
        "a bucket ends inside a layer: PyTorch decides which of that layer's gradients appear first, and so "
        "in which bucket each of them is");
  if (!in_order_of_gradients(plan) && plan.order == commtune::Order::kList)
    out.not_expressed.emplace_back(
        "messages go in an order of the plan's own; DDP sends in the order in which gradients appear");
}

void add_single_gaps(const Plan& plan, const Profile& profile, const Buckets& single,
                     const PredictedTime& predict, Exported& out) {
  const BucketGroups older = groups_by_cap(profile, 1_MiB, single.cap);
  if (older != single.groups)
    out.not_expressed.push_back(
        fmt::format("bucket_cap_mb for releases of before mid-2024: their first bucket is 1 MiB whatever the "
                    "cap{}",
                    prediction_text(predicted_time(plan, profile, older, predict))));
}

}  // namespace

Exported export_ddp(const Plan& plan, const Profile& profile, const PredictedTime& predict) {
  const PlanShape shape = shape_of(plan);
  Exported out{"ddp", {}, {}, {}};
  const Buckets single = best_single_cap(plan, profile, predict);
  const std::optional<Buckets> list = plan_as_list(plan, profile, predict);
  const bool as_planned = list && (plan.barrier == Barrier::kFull || !is_beaten(*list, single));
  const std::string one = python_call("bucket_cap_mb", single.setting);
  if (as_planned) {
    add_setting("bucket_cap_mb_list", *list, out);
    out.text =
        fmt::format("# PyTorch 2.13 and newer{}\n{}# older ones: {}\n{}", prediction_text(list->predicted),
                    python_call("bucket_cap_mb_list", list->setting), single_text(single), as_comment(one));
    add_list_gaps(plan, profile, *list, out);
  } else {
    out.text = fmt::format("# {}\n{}", single_text(single), one);
    out.not_expressed.push_back(fmt::format(
        "the plan's {} messages of {} to {}: {}", shape.sizes.size(), format_size(shape.smallest),
        format_size(shape.largest),
        list ? "DDP waits for all gradients, and is faster with equal buckets then"
             : "a bucket is a run of whole tensors in the order in which their gradients appear"));
  }
  add_setting("bucket_cap_mb", single, out);
  out.settings.emplace_back("gradient_as_bucket_view", "True");
  out.settings.emplace_back("static_graph", "True");
  add_road_gaps(plan.road, "DDP", {}, out);
  add_single_gaps(plan, profile, single, predict, out);
  add_common_gaps(shape, "DDP", out);
  return out;
}

}  // namespace commtune::api
