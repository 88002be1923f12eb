#include "perfmodel/cost/road_kind.h"

#include "perfmodel/base/overloaded.h"

namespace commtune {

namespace {

/// A road of the same kind (same_kind), the same one for all of that kind.
Road kind_of(const Road& road) {
  return match(
      road, [](const AllReduce& all_reduce) -> Road { return all_reduce; },
      [](const ParameterServer& servers) -> Road {
        return ParameterServer{1, servers.placement, Assignment::kEven, servers.local_sum};
      });
}

}  // namespace

Operations operations_of(const Road& road) {
  return match(
      road,
      [](const AllReduce&) {
        return Operations{Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather};
      },
      [](const ParameterServer&) {
        return Operations{Operation::kPushPull, Operation::kPush, Operation::kPull};
      });
}

std::optional<Assignment> assignment_of(const Road& road) {
  return match(
      road, [](const AllReduce&) { return std::optional<Assignment>{}; },
      [](const ParameterServer& servers) { return std::optional(servers.assignment); });
}

bool same_kind(const Road& a, const Road& b) { return kind_of(a) == kind_of(b); }

}  // namespace commtune
