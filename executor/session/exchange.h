#pragma once
// What ranks tell each other outside the training: who runs what, and what came of it. Control tag space.

#include <optional>
#include <string>
#include <vector>

#include "executor/transport/communicator.h"

namespace commtune {

/// Every rank's text on every rank, in rank order. For short texts: each rank sends to each.
/// throws Error{kTimeout} naming a rank that did not answer.
std::vector<std::string> all_gather(Communicator& communicator, const std::string& own, Deadline until);

/// Every rank's text on rank 0, in rank order; empty elsewhere. Throws as above.
std::vector<std::string> gather(Communicator& communicator, const std::string& own, Deadline until);

/// Rank 0's text on every rank. Throws as above.
std::string broadcast(Communicator& communicator, const std::string& own, Deadline until);

/// Comes back when every rank has called it.
void barrier(Communicator& communicator, Deadline until);

struct ClockSurvey {
  double offset_seconds = 0;  ///< this rank's steady clock minus rank 0's; 0 on rank 0
  Clock::time_point zero;     ///< a recent moment on rank 0's clock, the same on all ranks
};

/// By the fastest of several round trips to rank 0 (Cristian, Distributed Computing 3, 1989): the offset is
/// off by no more than half that trip's time. All ranks call it.
ClockSurvey survey_clocks(Communicator& communicator, Deadline until);

/// One line of what all ranks must have in common.
struct Fact {
  std::string name;  ///< "plan", "tensor type", ...
  std::string value;
};

/// What to say where ranks differ in something: "ranks disagree about the plan: rank 0 (host a) has ...". An
/// empty value is a rank's that has no part in it.
///
/// values  by rank
/// returns nullopt where all are equal
std::optional<std::string> disagreement(const Peers& peers, const std::string& name,
                                        const std::vector<std::string>& values);

/// Compares facts on all ranks; the same names in the same order everywhere.
/// throws Error{kConflict}, with the same text on every rank, naming the first fact that differs and who has
/// what; Error{kBadInput} naming a rank that says something else than facts, or not as many.
void agree(Communicator& communicator, const std::vector<Fact>& facts, Deadline until);

}  // namespace commtune
