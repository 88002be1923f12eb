#include "executor/session/joint_library.h"

#include <fmt/format.h>

#include "executor/collectives/registry/libraries.h"
#include "executor/session/exchange.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/overloaded.h"

namespace commtune {
namespace {

bool sums_by_library(const Plan& plan) {
  return match(
      plan.road, [](const AllReduce& all) { return all.algorithm == Collective::kLibrary; },
      [](const ParameterServer&) { return false; });
}

}  // namespace

std::unique_ptr<CollectiveLibrary> join_library(Communicator& communicator, const Plan& plan,
                                                Deadline until) {
  if (!sums_by_library(plan)) return nullptr;
  Transport& transport = communicator.transport();
  const std::string own = why_no_library(plan.library, transport).value_or("");
  const std::vector<std::string> reasons = all_gather(communicator, own, until);
  for (std::size_t rank = 0; rank < reasons.size(); ++rank) {
    if (reasons[rank].empty()) continue;
    throw Error(ErrorCode::kUnavailable,
                fmt::format("algorithm = library: {} cannot use {}",
                            describe(communicator.peers(), static_cast<int>(rank)), reasons[rank]));
  }
  return make_library(plan.library, transport, plan.workers);
}

}  // namespace commtune
