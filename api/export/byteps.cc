// BytePS: tensors are cut into partitions, and a credit bounds what is under way (docs/env.md,
// docs/best-practice.md).

#include <fmt/format.h>

#include <algorithm>

#include "api/export/shape.h"
#include "perfmodel/base/overloaded.h"
#include "tuner/server_keys.h"

namespace commtune::api {
namespace {

constexpr std::uint64_t kDefaultPartition = 4'096'000;

void add_road_gaps(const Road& road, Exported& out) {
  const auto all_reduce = [&](const AllReduce&) {
    out.not_expressed.push_back(fmt::format(
        "the plan's road is {}; BytePS has parameter servers only, and DMLC_NUM_SERVER is left to you",
        describe(road)));
  };
  const auto servers = [&](const ParameterServer& of) {
    if (of.placement == Placement::kColocated)
      out.not_expressed.push_back(fmt::format(
          "servers are colocated with workers: start a server process beside worker {} and on each of the "
          "following yourself",
          of.first));
    if (of.assignment == Assignment::kEven)
      out.not_expressed.push_back(
          "each message is cut evenly over all servers; BytePS sends a partition to one");
  };
  match(road, all_reduce, servers);
}

/// Servers that BytePS's own hash would not choose: those of its plans are the ones it chooses.
void add_server_gaps(const Plan& plan, const Profile& profile, Exported& out) {
  if (!tuner::takes_messages_whole(plan.road)) return;
  const int servers = whole_message_servers(plan.road);
  const bool partitions =
      std::ranges::all_of(plan.messages, [](const Message& message) { return message.pieces.size() == 1; });
  if (partitions && plan.server == tuner::byteps_servers(tuner::TensorKeys(profile), plan.messages, servers))
    return;
  out.not_expressed.push_back(
      plan.server.empty()
          ? "messages go to the servers in turn; BytePS chooses one by a hash of the partition's key"
          : "the plan names each message's server; BytePS chooses one by a hash of the partition's key");
}

}  // namespace

Exported export_byteps(const Plan& plan, const Profile& profile, const ExportPlace& /*place*/) {
  const PlanShape shape = shape_of(plan);
  Exported out{"byteps", {}, {}, {}};
  const std::uint64_t partition =
      shape.cut > 0 ? shape.largest.count : std::max(kDefaultPartition, shape.largest.count);
  set_variable(out, "DMLC_NUM_WORKER", std::to_string(plan.workers));
  match(
      plan.road, [](const AllReduce&) {},
      [&](const ParameterServer& road) {
        set_variable(out, "DMLC_NUM_SERVER", std::to_string(road.servers));
      });
  set_variable(out, "BYTEPS_PARTITION_BYTES", std::to_string(partition));
  // The credit counts partitions there, bytes here; without scheduling it is not set.
  if (plan.credit.count > 0 && plan.credit < profile.gradient_bytes()) {
    const std::uint64_t credits = std::max<std::uint64_t>(1, plan.credit.count / partition);
    set_variable(out, "BYTEPS_SCHEDULING_CREDIT", std::to_string(credits));
    out.not_expressed.push_back(fmt::format("the credit of {} is rounded to {} partition{} of {}",
                                            format_size(plan.credit), credits, credits == 1 ? "" : "s",
                                            format_size(Bytes{partition})));
  }
  out.text = shell_exports(out.settings);
  add_road_gaps(plan.road, out);
  add_server_gaps(plan, profile, out);
  if (!plan.window.empty())
    out.not_expressed.push_back("messages have windows of their own; BytePS has one credit for all");
  if (!plan.pulls.empty())
    out.not_expressed.push_back(
        fmt::format("what comes back is cut otherwise than what is pushed, into {} pulls; BytePS pulls what "
                    "it pushed",
                    plan.pulls.size()));
  if (shape.fused > 0)
    out.not_expressed.push_back(
        fmt::format("{} messages fuse several tensors; BytePS does not fuse", shape.fused));
  if (!shape.by_priority && goes_through_servers(plan.road))
    out.not_expressed.push_back(
        "messages go in the plan's order; BytePS sends the layers near the input first");
  if (shape.waits_for_backward)
    out.not_expressed.push_back("nothing is sent before the backward pass ends; BytePS sends during it");
  return out;
}

}  // namespace commtune::api
