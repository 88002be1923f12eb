#include "api/export/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "api/export/ddp_buckets.h"
#include "api/export/shape.h"
#include "api/launch/mpirun.h"
#include "api/text.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"

namespace commtune::api {
namespace {

constexpr std::array kTargets = {
    ExportTarget{"ddp", "PyTorch DistributedDataParallel: a cap for each bucket, or the best one",
                 export_ddp},
    ExportTarget{"ddp-single", "PyTorch before 2.13: the best single bucket_cap_mb", export_ddp_single},
    ExportTarget{"fsdp2", "PyTorch FSDP2: the modules that are sharded as a group, and what is prefetched",
                 export_fsdp2},
    ExportTarget{"deepspeed", "DeepSpeed: the bucket sizes of ZeRO, in its JSON", export_deepspeed},
    ExportTarget{"megatron", "Megatron-LM: the bucket size of its data parallelism, as arguments",
                 export_megatron},
    ExportTarget{"horovod", "Horovod: fusion threshold, cycle time, hierarchical all-reduce", export_horovod},
    ExportTarget{"byteps", "BytePS: partition, credit, numbers of workers and servers", export_byteps},
    ExportTarget{"nccl", "NCCL: what its tuner plugin reads: measured tunings, or the plan's algorithm",
                 export_nccl},
    ExportTarget{"env", "all settings that frameworks read from the environment", export_env},
};

void add_wire_gap(const Plan& plan, Exported& out) {
  if (plan.wire == WireFormat::kAsIs) return;
  out.not_expressed.push_back(
      fmt::format("the plan casts gradients to {} while they travel: a framework's own compression has to be "
                  "asked for where its all-reduce is set up",
                  to_string(plan.wire)));
}

}  // namespace

std::span<const ExportTarget> export_targets() { return kTargets; }

Exported export_plan(std::string_view target, const Plan& plan, const Profile& profile,
                     const ExportPlace& place) {
  std::vector<std::string_view> known;
  for (const ExportTarget& row : kTargets) {
    if (row.name == target) {
      Exported out = row.write(plan, profile, place);
      add_wire_gap(plan, out);
      return out;
    }
    known.push_back(row.name);
  }
  throw Error(ErrorCode::kNotFound, fmt::format("target \"{}\": not one of {}{}", target,
                                                fmt::join(known, ", "), did_you_mean(target, known)));
}

nlohmann::json to_json(const Exported& exported) {
  nlohmann::json settings = nlohmann::json::object();
  for (const auto& [name, value] : exported.settings) settings[name] = value;
  nlohmann::json predicted = nlohmann::json::object();
  for (const auto& [name, time] : exported.predicted) predicted[name] = time.count();
  return {{"target", exported.target},
          {"settings", std::move(settings)},
          {"text", exported.text},
          {"predicted_seconds", std::move(predicted)},
          {"not_expressed", exported.not_expressed}};
}

PlanShape shape_of(const Plan& plan) {
  PlanShape shape;
  for (const Message& message : plan.messages) shape.sizes.push_back(message_bytes(message));
  const auto [least, most] = std::minmax_element(shape.sizes.begin(), shape.sizes.end());
  if (least != shape.sizes.end()) {
    shape.smallest = *least;
    shape.largest = *most;
  }
  // A tensor is cut when several messages have a piece of it.
  std::vector<TensorId> seen;
  for (const Message& message : plan.messages)
    for (const Piece& piece : message.pieces) seen.push_back(piece.tensor);
  std::sort(seen.begin(), seen.end());
  for (const Message& message : plan.messages) {
    shape.fused += message.pieces.size() > 1 ? 1U : 0U;
    const bool cut = std::any_of(message.pieces.begin(), message.pieces.end(), [&](const Piece& piece) {
      const auto [low, high] = std::equal_range(seen.begin(), seen.end(), piece.tensor);
      return high - low > 1;
    });
    shape.cut += cut ? 1U : 0U;
  }
  shape.by_priority = plan.order == commtune::Order::kPriority;
  shape.decoupled = !plan.sequence.empty();
  shape.windows = !plan.window.empty();
  shape.per_layer = plan.barrier == Barrier::kPerLayer;
  shape.waits_for_backward = plan.release == Release::kBackward;
  return shape;
}

std::string shell_exports(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += fmt::format("export {}={}\n", name, quoted({value}));
  return text;
}

void set_variable(Exported& out, Variable variable, std::string value) {
  out.settings.emplace_back(variable.name(), std::move(value));
}

void add_road_gaps(const Road& road, std::string_view framework, std::optional<Collective> settable,
                   Exported& out) {
  const auto servers = [&](const ParameterServer&) {
    out.not_expressed.push_back(
        fmt::format("the plan's road is {}; {} has no servers", describe(road), framework));
  };
  const auto all_reduce = [&](const AllReduce& all) {
    if (all.algorithm == Collective::kLibrary || all.algorithm == settable) return;
    out.not_expressed.push_back(fmt::format(
        "the algorithm ({}) is the communication library's choice; see the target nccl", describe(road)));
  };
  match(road, all_reduce, servers);
}

void add_order_gap(const Plan& plan, std::string_view framework, Exported& out) {
  if (in_order_of_gradients(plan) || plan.order != commtune::Order::kList) return;
  out.not_expressed.push_back(fmt::format(
      "messages go in an order of the plan's own; {} sends in the order in which gradients appear",
      framework));
}

void add_common_gaps(const PlanShape& shape, std::string_view framework, Exported& out) {
  if (shape.cut > 0)
    out.not_expressed.push_back(
        fmt::format("{} of {} messages carry a part of a tensor; {} sends tensors whole", shape.cut,
                    shape.sizes.size(), framework));
  if (shape.by_priority)
    out.not_expressed.push_back(fmt::format(
        "messages are sent by priority; {} sends in the order in which gradients appear", framework));
  if (shape.decoupled)
    out.not_expressed.push_back(fmt::format(
        "the two stages of a message are scheduled apart; {} runs each all-reduce as one", framework));
  if (shape.windows)
    out.not_expressed.push_back(fmt::format(
        "each message has a window of its own; {} decides itself how many run at once", framework));
  if (shape.per_layer)
    out.not_expressed.push_back(fmt::format(
        "the next forward pass starts layer by layer; with {} it waits for all gradients", framework));
  if (shape.waits_for_backward)
    out.not_expressed.push_back(
        fmt::format("nothing is sent before the backward pass ends; {} sends during it", framework));
}

}  // namespace commtune::api
