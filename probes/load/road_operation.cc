#include "probes/load/road_operation.h"

#include <array>

#include "executor/roads/all_reduce/all_reduce.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"

namespace commtune::probes {

namespace {

constexpr std::array kAll{Collective::kRing,    Collective::kHalvingDoubling,  Collective::kRecursiveDoubling,
                          Collective::kOneShot, Collective::kDoubleBinaryTree, Collective::kHierarchical,
                          Collective::kLibrary};

Task run_all_reduce(Collective collective, Operation operation, const RoadMessage& message) {
  const AllReduceAlgorithm with = algorithm(collective);
  switch (operation) {
    case Operation::kAllReduce:
      return with.all_reduce(message);
    case Operation::kReduceScatter:
      if (with.reduce != nullptr) return with.reduce(message);
      break;
    case Operation::kAllGather:
      if (with.distribute != nullptr) return with.distribute(message);
      break;
    case Operation::kPushPull:
    case Operation::kPush:
    case Operation::kPull:
      break;
  }
  throw Error(ErrorCode::kUnavailable, "operation = " + to_string(operation) + ": " + to_string(collective) +
                                           " has no such stage of its own");
}

Task run_servers(const ParameterServer& road, Operation operation, const RoadMessage& message, Server* here) {
  if (operation == Operation::kPushPull) return push_pull(message, road, here);
  throw Error(ErrorCode::kUnavailable,
              "operation = " + to_string(operation) + ": pulls overlap with pushes, so neither runs alone");
}

}  // namespace

Task run_operation(const Road& road, Operation operation, const RoadMessage& message, Server* here) {
  return match(
      road, [&](const AllReduce& all) { return run_all_reduce(all.algorithm, operation, message); },
      [&](const ParameterServer& servers) { return run_servers(servers, operation, message, here); });
}

std::span<const Collective> all_algorithms() { return kAll; }

bool has_stages(Collective collective) {
  const AllReduceAlgorithm with = algorithm(collective);
  return with.reduce != nullptr && with.distribute != nullptr;
}

}  // namespace commtune::probes
