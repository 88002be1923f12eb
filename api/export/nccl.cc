// NCCL: the measured tunings for commtune's tuner plugin, as a variable, or NCCL_ALGO where none were
// measured; and both as the CSV of NCCL's example tuner plugin (NVIDIA/nccl, plugins/tuner/example), which
// sets the algorithm by size:
// collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff; -1 leaves
// it.

#include <fmt/format.h>

#include "api/export/shape.h"
#include "perfmodel/base/overloaded.h"

namespace commtune::api {
namespace {

constexpr std::string_view kCsvHead =
    "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n";

/// As the example plugin has NCCL's names.
std::string_view csv_collective(NcclCollective collective) {
  switch (collective) {
    case NcclCollective::kAllReduce:
      return "allreduce";
    case NcclCollective::kReduceScatter:
      return "reducescatter";
    case NcclCollective::kAllGather:
      break;
  }
  return "allgather";
}

std::string_view csv_algorithm(NcclAlgorithm algorithm) {
  switch (algorithm) {
    case NcclAlgorithm::kTree:
      return "tree";
    case NcclAlgorithm::kCollnetDirect:
      return "collnet_direct";
    case NcclAlgorithm::kCollnetChain:
      return "collnet_chain";
    case NcclAlgorithm::kNvls:
      return "nvls";
    case NcclAlgorithm::kNvlsTree:
      return "nvls_tree";
    case NcclAlgorithm::kPat:
      return "pat";
    case NcclAlgorithm::kOwn:
    case NcclAlgorithm::kRing:
      break;
  }
  return "ring";
}

std::string_view csv_protocol(NcclProtocol protocol) {
  if (protocol == NcclProtocol::kLl) return "ll";
  return protocol == NcclProtocol::kLl128 ? "ll128" : "simple";
}

void add_measured_tunings(const NcclTuningTable& table, Exported& out) {
  set_variable(out, "COMMTUNE_NCCL_TUNING", to_text(table));
  out.text = kCsvHead;
  for (const NcclChoices& choices : table.choices) {
    for (const NcclRange& range : choices.ranges) {
      const int channels = range.tuning.channels == 0 ? -1 : static_cast<int>(range.tuning.channels);
      out.text += fmt::format("{},{},{},{},{},{},{},{},-1,-1\n", csv_collective(choices.collective),
                              range.first.count, range.last.count, csv_algorithm(range.tuning.algorithm),
                              csv_protocol(range.tuning.protocol), channels, choices.nodes, choices.ranks);
    }
  }
  out.not_expressed.emplace_back(
      "the variable is read by commtune's tuner plugin, which NCCL loads where its own NCCL_TUNER_PLUGIN "
      "names it");
}

/// NCCL's word for the algorithm, or "" when it has none.
std::string_view nccl_algorithm(Collective algorithm) {
  switch (algorithm) {
    case Collective::kRing:
      return "ring";
    case Collective::kDoubleBinaryTree:
      return "tree";
    case Collective::kHalvingDoubling:
    case Collective::kRecursiveDoubling:
    case Collective::kOneShot:
    case Collective::kHierarchical:
    case Collective::kLibrary:
      return "";
  }
  return "";
}

std::string_view nccl_algorithm(const Road& road) {
  return match(
      road, [](const AllReduce& all) { return nccl_algorithm(all.algorithm); },
      [](const ParameterServer&) { return std::string_view{}; });
}

/// Of a road that NCCL has no word for.
void add_unknown_road(const Road& road, Exported& out) {
  const auto all_reduce = [&](const AllReduce& all) {
    if (all.algorithm == Collective::kLibrary) return;  // that is what NCCL does when nothing is set
    out.not_expressed.push_back(fmt::format("NCCL has no {}; its own choice is left alone", describe(road)));
  };
  const auto servers = [&](const ParameterServer&) {
    out.not_expressed.push_back(
        fmt::format("the plan's road is {}; NCCL has collectives only, and nothing is set", describe(road)));
  };
  match(road, all_reduce, servers);
}

}  // namespace

Exported export_nccl(const Plan& plan, const Profile& /*profile*/, const ExportPlace& place) {
  const PlanShape shape = shape_of(plan);
  Exported out{"nccl", {}, {}, {}};
  if (!place.nccl.choices.empty()) {
    add_measured_tunings(place.nccl, out);
    return out;
  }
  const std::string_view algorithm = nccl_algorithm(plan.road);
  if (!algorithm.empty()) {
    set_variable(out, "NCCL_ALGO", algorithm == "ring" ? "Ring" : "Tree");
    out.text = fmt::format("{}allreduce,{},{},{},simple,-1,-1,{},-1,-1\n", kCsvHead, shape.smallest.count,
                           shape.largest.count, algorithm, plan.workers);
    out.not_expressed.emplace_back(
        "protocol and channels were not measured: the CSV says simple, the environment leaves them to NCCL");
  } else {
    add_unknown_road(plan.road, out);
  }
  out.not_expressed.emplace_back(
      "what is fused, cut and sent when is the framework's part; see the targets ddp and horovod");
  return out;
}

}  // namespace commtune::api
