#pragma once
// Runs one job on all hosts: starts mpirun, hands the order to rank 0, and listens to what it reports.
//
// The order goes to rank 0's standard input as one line of JSON, and rank 0 tells the others; so no file
// system is shared. Where the order is a session's (api/wire/order.h), more lines follow while the job runs:
// a plan each, the next when rank 0 has reported of the one before, and one that ends it. Reports come back
// as lines of JSON on its standard output (api/wire/events.h). What anybody writes to standard error is kept
// aside and becomes one message when the job fails.

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/launch/cancellation.h"
#include "api/launch/mpirun.h"
#include "api/wire/events.h"
#include "perfmodel/base/units.h"

namespace commtune::api {

struct LaunchOptions {
  MpirunOptions mpirun;
  Seconds start_timeout{60.0};     ///< until the ranks report that they have started
  Seconds silence_timeout{300.0};  ///< longest time without any report after that
  void check() const;              ///< throws Error{kBadInput} naming field, value and rule
};

/// Called for each report but the last one, on the calling thread. May throw: the job is then ended.
using LaunchReportHandler = std::function<void(const LaunchReport&)>;

/// A job to which more is said while it runs. Nothing is heard of it but while one of the calls below waits.
/// One thread, which the job does not outlive.
class LaunchedJob {
 public:
  /// Starts it.
  ///
  /// cancellation  outlives this
  /// throws        Error{kUnavailable} where mpirun cannot be started, Error{kInterrupted} when it was
  ///               cancelled before
  LaunchedJob(const nlohmann::json& order, const LaunchOptions& options, Cancellation& cancellation);
  /// Ends a job that still runs: as when it is cancelled, and nobody hears of it.
  ~LaunchedJob();
  LaunchedJob(const LaunchedJob&) = delete;
  LaunchedJob& operator=(const LaunchedJob&) = delete;

  /// One more line for rank 0.
  void tell(const nlohmann::json& order);

  /// Hands reports on until `enough`, which is asked after each of them. Silence is counted from here.
  ///
  /// throws  as launch(), and Error{kUnavailable} where the job ended in order before that; after that only
  ///         the destructor may be called
  void listen(const LaunchReportHandler& on_report, const std::function<bool()>& enough);

  /// Waits for its end.
  ///
  /// returns, throws  as launch()
  nlohmann::json finish(const LaunchReportHandler& on_report);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Starts the job and waits for its end.
///
/// returns  the result that rank 0 handed back, also when it was asked to stop and did so in order
/// throws   the Error that rank 0 reported; Error{kInterrupted} when it was cancelled and had no result to
///          hand back; Error{kTimeout}, {kPeerLost}, {kUnavailable} as diagnose() says
nlohmann::json launch(const nlohmann::json& order, const LaunchOptions& options,
                      const LaunchReportHandler& on_report, Cancellation& cancellation);

}  // namespace commtune::api
