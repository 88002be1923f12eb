#pragma once
// How the ranks of a run get the library of collectives that their plan sums by.

#include <memory>

#include "executor/collectives/library.h"
#include "executor/transport/communicator.h"
#include "perfmodel/plan.h"

namespace commtune {

/// All ranks call it.
///
/// returns  nullptr where the plan needs none; the communicator's transport outlives it
/// throws   Error{kUnavailable} where a worker cannot use it: on every rank the same text, which names the
///          first such rank and says why
std::unique_ptr<CollectiveLibrary> join_library(Communicator& communicator, const Plan& plan, Deadline until);

}  // namespace commtune
