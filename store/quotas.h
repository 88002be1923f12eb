#pragma once
// How much each token of the service has stored, for limits on it. All but jobs are counted as
// they come and go, so to ask costs the same however many there are.

#include <cstdint>
#include <string>

#include "store/store.h"

namespace commtune {

/// What a token may have only so much of.
enum class Held {
  kProfiles,
  kPlans,
  kRuns,
  kWaitingJobs,  ///< queued; a running one is none
  kAnswers,      ///< kept under their idempotency keys
};

std::string to_string(Held held);  ///< "profiles", "plans", "runs", "jobs", "answers"

/// The counts of a store. Thread and error rules are the store's; keep the store longer than this.
class Quotas {
 public:
  explicit Quotas(Store& store);

  /// Rows that were handed in with this token and are still there. Rows that came otherwise, and those of
  /// databases from before tokens were noted, are nobody's.
  std::int64_t count(Held held, TokenId token) const;

 private:
  Store::Impl* impl_;  ///< the store's; stays where it is when the store is moved
};

}  // namespace commtune
