#pragma once
// Questions for a plan: answered from memory when they were asked before and the fit is still the same.

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "api/question/answer.h"
#include "api/rest/caches.h"
#include "api/rest/events.h"
#include "api/rest/fair_semaphore.h"
#include "api/rest/metrics.h"
#include "api/rest/quota.h"
#include "api/rest/store_access.h"

namespace commtune::api::rest {

class PlanService {
 public:
  struct Parts {
    StoreAccess& store;
    FitCache& fits;
    ProfileCache& profiles;
    Metrics& metrics;
    Events& events;
    FairSemaphore& planning;
    Seconds fit_age;                         ///< from which fits are marked
    std::chrono::milliseconds compute_time;  ///< longest wait for a turn, and for more than a plan
    std::chrono::milliseconds plan_time;     ///< longest computing of a request's plans
    const QuotaLimits& quotas;
    const Clock& clock;
    const std::atomic<bool>& stopping;
  };
  explicit PlanService(const Parts& parts) : parts_(parts) {}

  struct Said {
    std::string text;      ///< PlanReply of api/openapi.yaml
    RowId plan = 0;        ///< 0: none was stored
    bool created = false;  ///< by this very question
  };
  /// The answer to the body of a request that was asked before, where it still holds.
  std::optional<Said> known(const std::string& body);
  /// Answers a question, and remembers for which body. Throws Error{kNotFound} for a model or cluster that
  /// does not exist, Error{kPoorFit} where no fit is usable, Error{kUnavailable} when its turn does not come,
  /// Error{kTimeout} when the time limit passes before there is any plan, HttpRefusal where the caller has
  /// stored as much as it may. An answer that costs nothing new is given all the same.
  Said answer(const std::string& body, const Question& question, const Caller& caller);

 private:
  /// An answer that can be given again; an incomplete one only to those who waited for it.
  struct Kept {
    std::string cluster, transport;           ///< the question's
    RowId fit = 0;                            ///< 0: of no cluster of the store, so it holds for good
    FitIds fits;                              ///< Asked::fits
    FitMarks marks;                           ///< of the fits when the answer was made
    std::shared_ptr<const std::string> text;  ///< with "cached": true, if it is complete
    RowId plan = 0;
    bool complete = true;
  };
  using KeptPointer = std::shared_ptr<const Kept>;

  FitAge age_now() const;
  /// Whether the fits are still those, and as they were.
  bool still_rests_on(const Kept& kept) const;
  /// Who asks, and how long the request may go on computing.
  struct Asker {
    const Caller& caller;
    std::chrono::steady_clock::duration left;
  };
  /// PlanAnswer or UnknownAnswer; `kept` is filled in for the former.
  struct One {
    nlohmann::json document;
    std::string text;  ///< of the document; empty: not written yet
    KeptPointer kept;
    bool created = false;
  };
  One answer_one(const Question& question, const Allocation& allocation, const ClusterChoice& cluster,
                 Asker& asker);
  One compute(Asked asked, const std::string& profile, Asker& asker);
  /// Within the time that is left. An incomplete answer has no recommendation and no explanation.
  TuneOutcome plan(Asked asked, Asker& asker);
  /// Stores the answer's plans, unless nothing is to be kept, or finds those that an earlier service stored
  /// for the same question.
  ///
  /// record  record_of the question
  bool keep(TuneOutcome& outcome, const nlohmann::json& record, const Caller& caller);

  const Parts parts_;
  std::mutex mutex_;  // guards the three below
  BoundedMap<KeptPointer> by_body_{8192};
  BoundedMap<KeptPointer> by_key_{8192};
  /// Of a question that somebody works on: what the others are to say. Null: they are to ask again.
  std::unordered_map<std::string, std::shared_future<KeptPointer>> under_way_;
};

}  // namespace commtune::api::rest
