#pragma once
// What ranks tell each other between two plans: rank 0 announces what comes next, every rank answers, and
// rank 0 says what all of them do. Control tag space; while no engine uses the communicator.

#include <cstdint>
#include <optional>
#include <string>

#include "executor/transport/communicator.h"
#include "perfmodel/base/error.h"
#include "perfmodel/plan.h"

namespace commtune {

/// Why a plan is not adopted.
struct Refusal {
  ErrorCode code = ErrorCode::kBadInput;
  std::string text;
};

/// What rank 0 says comes next.
struct Announcement {
  std::string digest;                 ///< of the plan; empty: no more plans come, the session ends
  std::optional<Plan> plan;           ///< where ranks may not know it yet
  std::optional<Refusal> unreadable;  ///< what came in its place is no plan
};

/// What a rank says to an announcement.
struct AdoptionAnswer {
  std::string digest;                      ///< of the plan that it was handed itself; empty: none
  std::optional<std::uint64_t> iteration;  ///< that it would begin next; empty on ranks that do not train
  std::optional<Refusal> refusal;
};

/// Rank 0's announcement on every rank.
///
/// own     rank 0's; nothing elsewhere
/// throws  Error{kTimeout} naming a rank that did not answer, Error{kBadInput} for what is no announcement
Announcement announce(Communicator& communicator, const Announcement& own, Deadline until);

/// Every rank's answer, judged by rank 0: the first difference between ranks, otherwise the first rank's
/// refusal.
///
/// returns  the same on all ranks; empty: the plan is adopted
/// throws   as above, naming the rank
std::optional<Refusal> judge(Communicator& communicator, const AdoptionAnswer& own, Deadline until);

}  // namespace commtune
