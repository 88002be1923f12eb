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

void JointLibrary::join(Communicator& communicator, const Plan& plan, Deadline until) {
  if (!sums_by_library(plan)) return;
  if (workers_ == plan.workers && name_ == plan.library) return;
  library_.reset();
  workers_ = 0;
  const std::string own = why_no_library(plan.library, communicator).value_or("");
  const std::vector<std::string> reasons = all_gather(communicator, own, until);
  for (std::size_t rank = 0; rank < reasons.size(); ++rank) {
    if (reasons[rank].empty()) continue;
    throw Error(ErrorCode::kUnavailable,
                fmt::format("algorithm = library: {} cannot use {}",
                            describe(communicator.peers(), static_cast<int>(rank)), reasons[rank]));
  }
  const auto tell = [&](const std::string& text) { return broadcast(communicator, text, until); };
  library_ = make_library(plan.library, {communicator, tell, until}, plan.workers);
  name_ = plan.library;
  workers_ = plan.workers;
}

}  // namespace commtune
