// NCCL: NCCL_ALGO, and the CSV of the example tuner plugin (ext-tuner/example), which sets the algorithm by
// size: collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff; -1
// leaves it.

#include <fmt/format.h>

#include "api/export/shape.h"
#include "perfmodel/base/overloaded.h"

namespace commtune::api {
namespace {

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

Exported export_nccl(const Plan& plan, const Profile& /*profile*/, const PredictedTime& /*predict*/) {
  const PlanShape shape = shape_of(plan);
  Exported out{"nccl", {}, {}, {}};
  const std::string_view algorithm = nccl_algorithm(plan.road);
  if (!algorithm.empty()) {
    set_variable(out, "NCCL_ALGO", algorithm == "ring" ? "Ring" : "Tree");
    out.text = fmt::format(
        "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n"
        "allreduce,{},{},{},simple,-1,-1,{},-1,-1\n",
        shape.smallest.count, shape.largest.count, algorithm, plan.workers);
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
