#pragma once
// Long work that was asked for (a probe, a verified tuning, a run): queued, taken up one at a time per
// cluster, and still known after the process that did it is gone.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace commtune {

enum class JobState {
  kQueued,
  kRunning,
  kComplete,
  kFailed,
  kCancelled,
  kInterrupted,  ///< its process is gone; may be queued again
};

std::string to_string(JobState state);  ///< "queued", "running", ...

struct NewJob {              // NOLINT(bugprone-exception-escape): moving a nlohmann::json does not throw
  std::string kind{};        ///< "probe", "tune", "run"
  nlohmann::json request{};  ///< what was asked for, already checked
  std::optional<RowId> cluster{};  ///< of jobs on one cluster, one runs at a time
  std::string requested_by{};      ///< a token's name, for people
  std::optional<TokenId> token{};  ///< as NewPlan::token
  std::string idempotency_key{};   ///< asking twice with one key is asking once; empty: none
};

struct JobRow : NewJob {
  RowId id = 0;
  JobState state = JobState::kQueued;
  std::string owner;    ///< the process that took it up, in its own words
  int attempts = 0;     ///< how often it was taken up
  double progress = 0;  ///< 0 to 1
  std::string stage;    ///< what it is doing
  bool cancel_requested = false;
  std::string error;
  nlohmann::json result;  ///< null until complete
  std::optional<Timestamp> started;
  std::optional<Timestamp> ended;
  Origin origin;
};

struct JobLogLine {
  RowId id = 0;
  Timestamp at{};
  std::string text;
};

/// The jobs of a store. Thread and error rules are the store's; keep the store longer than this.
class Jobs {
 public:
  explicit Jobs(Store& store);

  /// The job's id; that of the job already queued under the same idempotency key, if there is one. Throws
  /// Error{kConflict} when that one has another kind, cluster or request.
  RowId enqueue(const NewJob& job);

  /// Takes up the oldest queued job whose cluster has no running one: it is running, for `owner`. Empty when
  /// there is nothing to do. Of several processes that ask, each gets another job.
  std::optional<JobRow> take_next(const std::string& owner);

  /// progress  0 to 1. Throws Error{kConflict} when the job is not running.
  void report(RowId id, double progress, const std::string& stage);
  void append_log(RowId id, std::string_view line);

  /// A queued job is cancelled at once; a running one is told so and goes on until it notices. The state
  /// after the call; an ended job stays as it is.
  JobState request_cancel(RowId id);
  bool cancel_requested(RowId id) const;

  /// state  kComplete, kFailed, kCancelled or kInterrupted. Throws Error{kConflict} when it is not running.
  void finish(RowId id, JobState state, const nlohmann::json& result = nullptr,
              const std::string& error = {});

  /// Ends the running jobs whose owner is gone (store/owner.h) as interrupted; their ids.
  std::vector<RowId> interrupt_abandoned(const std::function<bool(const std::string& owner)>& gone);

  /// Queues an interrupted or failed job again, under its own id. Throws Error{kConflict} otherwise.
  ///
  /// token  whose job it is from now on; absent: whose it was
  void requeue(RowId id, std::optional<TokenId> token = {});

  std::optional<JobRow> find(RowId id) const;
  PageOf<JobRow> list(const Page& page = {}) const;
  /// Oldest first.
  PageOf<JobLogLine> log(RowId id, const Page& page = {}) const;

 private:
  Store::Impl* impl_;  ///< the store's; stays where it is when the store is moved
};

}  // namespace commtune
