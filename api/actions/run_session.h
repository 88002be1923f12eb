#pragma once
// Plans that run one after another on ranks which are started once: whoever asks knows the next plan only
// when the one before it has been measured.

#include <memory>
#include <optional>
#include <string>

#include "api/actions/context.h"
#include "api/actions/run.h"
#include "api/launch/launcher.h"
#include "perfmodel/base/units.h"
#include "probes/host/fact_differences.h"

namespace commtune::api {

class RunRecord;

/// One thread. Ranks wait between two runs, and end when they are told to: by end(), by the destructor, or
/// where a run cannot share their session (another profile, network, pace or number of workers), needs more
/// ranks than there are, or has failed; the next run then starts them again. Each run is stored as those of
/// `tune run` are, with the session's name as `group` in its settings, and what is finished stays so whatever
/// becomes of the others.
class RunSession {
 public:
  /// ranks  to start, where the hosts offer them: as many as the plan with the most dedicated servers needs
  ///        that can come. A plan needs no more than hosts offer
  explicit RunSession(int ranks);
  ~RunSession();
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  struct Ran {
    RunOutcome outcome;
    Seconds starting{};  ///< that it took to start the ranks; 0 where they were there
  };
  /// context  with the same cancellation in each call, which outlives this
  /// request  its placing has at least the plan's ranks; it runs on the first of them
  /// throws   what run_job throws
  Ran run(Context& context, const RunRequest& request);

  /// The ranks are told to end, and waited for. What goes wrong then changes no run.
  void end() noexcept;

  /// How often ranks were started.
  int starts() const { return starts_; }

 private:
  void measure(const Context& context, const RunRequest& request, RunRecord& record);
  bool is_there_for(const RunRequest& request) const;
  void start(Context& context, const RunRequest& request);

  const int wanted_;
  const std::string group_;
  int starts_ = 0;
  // Of the ranks that are there:
  std::unique_ptr<LaunchedJob> job_;
  std::optional<RunRequest> first_;  // that they were started for
  int ranks_ = 0;
  probes::Facts facts_;
};

}  // namespace commtune::api
