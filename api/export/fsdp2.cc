// PyTorch's FSDP2 (torch/distributed/fsdp/_fully_shard). The parameters of the modules that one call of
// fully_shard() is given, and of those inside them that no earlier call had, are a group: their gradients are
// reduce-scattered as one when the last of them exists, their parameters gathered as one before they are
// used. With reshard_after_forward=False they are gathered once an iteration, so that both together are the
// traffic of an all-reduce.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/export/shape.h"
#include "api/export/single_cap.h"
#include "tuner/messages.h"

namespace commtune::api {
namespace {

/// Parameters of one module that it has itself.
struct ShardedModule {
  std::string name;  ///< empty: the model itself
  std::vector<TensorId> tensors;
};

/// Modules that are sharded together, in the order of the forward pass.
using ModuleGroup = std::vector<ShardedModule>;

std::string module_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? std::string() : parameter.substr(0, dot);
}

/// In the order of their first tensors.
std::vector<ShardedModule> modules_of(const Profile& profile) {
  std::vector<ShardedModule> modules;
  std::map<std::string, std::size_t> known;
  TensorId id = 0;
  for (const Layer& layer : profile.layers) {
    for (const Tensor& tensor : layer.tensors) {
      const std::string name = module_of(tensor.name);
      const auto [at, is_new] = known.emplace(name, modules.size());
      if (is_new) modules.push_back({name, {}});
      modules[at->second].tensors.push_back(id++);
    }
  }
  return modules;
}

/// Of each tensor the message with its piece that is complete last: the one with the lowest tensor in it.
std::vector<TensorId> last_messages(const Plan& plan, const Profile& profile) {
  std::vector<TensorId> last(profile.tensor_count(), static_cast<TensorId>(profile.tensor_count()));
  for (const Message& message : plan.messages) {
    const TensorId lowest = std::ranges::min_element(message.pieces, {}, &Piece::tensor)->tensor;
    for (const Piece& piece : message.pieces) last[piece.tensor] = std::min(last[piece.tensor], lowest);
  }
  return last;
}

/// A message's modules as a group. Where messages end inside a module, it goes with the one that is complete
/// last.
std::vector<ModuleGroup> groups_of(const Plan& plan, const Profile& profile) {
  const std::vector<TensorId> last = last_messages(plan, profile);
  std::map<TensorId, ModuleGroup> by_message;
  for (ShardedModule& module : modules_of(profile)) {
    TensorId message = last[module.tensors.front()];
    for (const TensorId tensor : module.tensors) message = std::min(message, last[tensor]);
    by_message[message].push_back(std::move(module));
  }
  std::vector<ModuleGroup> groups;
  groups.reserve(by_message.size());
  for (auto& [message, group] : by_message) groups.push_back(std::move(group));
  return groups;
}

bool is_inside(const std::string& inner, const std::string& outer) {
  return !outer.empty() && inner.size() > outer.size() && inner.starts_with(outer) &&
         inner[outer.size()] == '.';
}

/// fully_shard() is called from the last group to the first, and takes all that is inside a module: a group
/// with a module around one of an earlier group would take that, so the two become one with those between
/// them.
std::vector<ModuleGroup> without_overlaps(std::vector<ModuleGroup> groups) {
  for (std::size_t later = 1; later < groups.size(); ++later) {
    const auto is_around = [&](const ShardedModule& module) {
      return std::ranges::any_of(
          groups[later], [&](const ShardedModule& outer) { return is_inside(module.name, outer.name); });
    };
    const auto first =
        std::find_if(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(later),
                     [&](const ModuleGroup& group) { return std::ranges::any_of(group, is_around); });
    const auto end = groups.begin() + static_cast<std::ptrdiff_t>(later);
    if (first == end) continue;
    for (auto group = first + 1; group <= end; ++group)
      first->insert(first->end(), group->begin(), group->end());
    later = static_cast<std::size_t>(first - groups.begin());
    groups.erase(first + 1, end + 1);
  }
  return groups;
}

/// What FSDP2 does with them, as a plan: the reduce-scatters in the order in which gradients appear, then the
/// all-gathers in the order of the forward pass, which waits for each group.
Plan sharded_plan(const Plan& plan, const std::vector<ModuleGroup>& groups, const Profile& profile) {
  Plan out = bucket_plan(plan, profile, {profile.tensor_count()});
  if (!may_be_decoupled(out.road)) out.road = AllReduce{};
  const std::vector<TensorRef> tensors = tensors_of(profile);
  out.messages.clear();
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    Message message;
    for (const ShardedModule& module : *group)
      for (const TensorId tensor : module.tensors)
        message.pieces.push_back({tensor, Bytes{0}, tensors[tensor].bytes});
    std::ranges::sort(message.pieces, std::greater{}, &Piece::tensor);
    out.messages.push_back(std::move(message));
  }
  out.priority = tuner::list_priorities(out.messages.size());
  const auto count = static_cast<std::uint32_t>(out.messages.size());
  out.sequence.reserve(std::size_t{2} * count);
  for (std::uint32_t i = 0; i < count; ++i) out.sequence.push_back({i, Stage::kReduce});
  for (std::uint32_t i = count; i-- > 0;) out.sequence.push_back({i, Stage::kDistribute});
  out.barrier = Barrier::kPerLayer;
  return out;
}

/// Groups, and what is known of an iteration with them.
struct Sharding {
  std::vector<ModuleGroup> groups;
  Plan plan;
  std::optional<Seconds> predicted;
};

Sharding sharding_of(std::vector<ModuleGroup> groups, const Plan& plan, const Profile& profile,
                     const PredictedTime& predict) {
  Plan sharded = sharded_plan(plan, groups, profile);
  const std::optional<Seconds> time = predict ? predict(sharded) : std::nullopt;
  return {std::move(groups), std::move(sharded), time};
}

/// Modules from the last one on, each group until it has so much.
std::vector<ModuleGroup> equal_groups(const Profile& profile, Bytes cap) {
  const std::vector<TensorRef> tensors = tensors_of(profile);
  std::vector<ShardedModule> modules = modules_of(profile);
  std::vector<ModuleGroup> groups;
  Bytes filled = cap;
  for (auto module = modules.rbegin(); module != modules.rend(); ++module) {
    if (filled >= cap) {
      groups.emplace_back();
      filled = Bytes{0};
    }
    for (const TensorId tensor : module->tensors) filled += tensors[tensor].bytes;
    groups.back().insert(groups.back().begin(), std::move(*module));
  }
  std::ranges::reverse(groups);
  return without_overlaps(std::move(groups));
}

/// The plan's messages as groups, or equal ones where they are predicted to be faster: messages are chosen
/// for an order, and for parts of tensors, that FSDP2 does not have.
Sharding best_sharding(const Plan& plan, const Profile& profile, const PredictedTime& predict) {
  Sharding best = sharding_of(without_overlaps(groups_of(plan, profile)), plan, profile, predict);
  if (!best.predicted) return best;
  for (const Bytes cap : caps_to_try(profile)) {
    Sharding other = sharding_of(equal_groups(profile, cap), plan, profile, predict);
    if (other.predicted && *other.predicted < *best.predicted) best = std::move(other);
  }
  return best;
}

bool has_the_model(const ModuleGroup& group) {
  return std::ranges::any_of(group, [](const ShardedModule& module) { return module.name.empty(); });
}

/// The names that fully_shard() is given: what is inside another one of them comes with it.
std::vector<std::string> outermost(const ModuleGroup& group) {
  std::vector<std::string> names;
  for (const ShardedModule& module : group) {
    const bool comes_along = std::ranges::any_of(
        group, [&](const ShardedModule& other) { return is_inside(module.name, other.name); });
    if (!comes_along) names.push_back(module.name);
  }
  return names;
}

/// All groups but the one with parameters of the model itself, which the last call takes.
std::vector<std::vector<std::string>> named_groups(const std::vector<ModuleGroup>& groups) {
  std::vector<std::vector<std::string>> names;
  for (const ModuleGroup& group : groups)
    if (!has_the_model(group)) names.push_back(outermost(group));
  return names;
}

std::string python_text(const std::vector<std::vector<std::string>>& names, const std::string& prediction) {
  std::string text =
      fmt::format("# PyTorch 2.6 and newer{}\nfrom torch.distributed.fsdp import fully_shard\n\ngroups = [\n",
                  prediction);
  for (const std::vector<std::string>& group : names) text += "    " + nlohmann::json(group).dump() + ",\n";
  return text +
         "]\n"
         "for names in reversed(groups):\n"
         "    fully_shard([model.get_submodule(name) for name in names], reshard_after_forward=False)\n"
         "fully_shard(model, reshard_after_forward=False)\n"
         "first = [model.get_submodule(names[0]) for names in groups]\n"
         "for module, following in zip(first, first[1:]):\n"
         "    module.set_modules_to_forward_prefetch([following])\n";
}

void add_group_gap(const Plan& plan, const Profile& profile, const Plan& sharded, Exported& out) {
  if (consecutive_groups(plan, profile) == consecutive_groups(sharded, profile)) return;
  const PlanShape shape = shape_of(plan), groups = shape_of(sharded);
  out.not_expressed.push_back(fmt::format(
      "the plan's {} messages of {} to {}: a group is made of whole modules, and is gathered apart "
      "from the reduction; there are {} of {} to {}",
      shape.sizes.size(), format_size(shape.smallest), format_size(shape.largest), groups.sizes.size(),
      format_size(groups.smallest), format_size(groups.largest)));
}

}  // namespace

Exported export_fsdp2(const Plan& plan, const Profile& profile, const ExportPlace& place) {
  Exported out{"fsdp2", {}, {}, {}};
  const Sharding sharding = best_sharding(plan, profile, place.predict);
  const std::vector<std::vector<std::string>> names = named_groups(sharding.groups);
  out.settings.emplace_back("groups", nlohmann::json(names).dump());
  out.settings.emplace_back("reshard_after_forward", "False");
  if (sharding.predicted) out.predicted.emplace_back("groups", *sharding.predicted);
  out.text = python_text(names, prediction_text(sharding.predicted));
  add_group_gap(plan, profile, sharding.plan, out);
  PlanShape shape = shape_of(plan);
  add_order_gap(plan, "FSDP2", out);
  if (!shape.decoupled)
    out.not_expressed.emplace_back(
        "a message is all-reduced as one; FSDP2 reduce-scatters gradients in the backward pass and gathers "
        "parameters in the next forward pass");
  out.not_expressed.emplace_back(
      "the optimizer's step waits for all gradients; parameters are gathered after it, group by group");
  out.not_expressed.emplace_back(
      "with reshard_after_forward=True, which needs less memory, parameters are gathered again in the "
      "backward pass: half as many bytes more, and not in the predicted time");
  if (plan.credit < profile.gradient_bytes() || shape.windows)
    out.not_expressed.emplace_back(
        "how much may be under way: one group is prefetched while another one computes");
  add_road_gaps(plan.road, "FSDP2", {}, out);
  shape.decoupled = shape.per_layer = shape.windows = false;
  add_common_gaps(shape, "FSDP2", out);
  return out;
}

}  // namespace commtune::api
