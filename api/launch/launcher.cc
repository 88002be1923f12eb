#include "api/launch/launcher.h"

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <optional>
#include <utility>

#include "api/launch/diagnosis.h"
#include "api/launch/process.h"
#include "api/launch/srun.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// How long mpirun may take to end after the last report: it waits for daemons on hosts that may be gone.
constexpr Seconds kEndingTime{5.0};

std::string as_line(const nlohmann::json& order) { return order.dump() + '\n'; }

ProcessOptions process_options(const LaunchOptions& options, const nlohmann::json& order) {
  ProcessOptions process;
  process.argv = launch_command(options.mpirun, inspect_site());
  process.input = as_line(order);
  // More may follow; and mpirun of Open MPI 4.1 may crash at the end of its input while rank 0 still reads
  // what came before.
  process.ends_input = false;
  // mpirun hands SIGUSR1 on to the ranks, where rank 0 ends in order; SIGTERM ends them at once.
  process.ending = {{SIGUSR1, std::chrono::seconds(5)}, {SIGTERM, std::chrono::seconds(10)}};
  return process;
}

void check_seconds(const char* field, Seconds value) {
  if (std::isfinite(value.count()) && value.count() > 0 && value.count() <= 1e6) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} = {} s: must be more than 0 s and at most 1e6 s", field, value.count()));
}

}  // namespace

/// A job's process, what was said to it, and what it has said so far.
class LaunchedJob::Impl {
 public:
  Impl(const nlohmann::json& order, LaunchOptions options, Cancellation& cancellation)
      : options_(std::move(options)),
        cancellation_(cancellation),
        last_heard_(SteadyClock::now()),
        process_(process_options(options_, order), hooks_, cancellation) {}

  void tell(const nlohmann::json& order) { process_.write(as_line(order)); }

  /// returns  nothing: enough was heard; or how the job has ended
  std::optional<ProcessEnd> listen(const LaunchReportHandler& on_report,
                                   const std::function<bool()>& enough) {
    on_report_ = &on_report;
    last_heard_ = SteadyClock::now();
    const std::optional<ProcessEnd> end = process_.wait(enough);
    on_report_ = nullptr;
    if (!end && broken_) throw Error(*broken_);  // something of what was to be heard is lost
    return end;
  }

  /// Of a job that has ended.
  nlohmann::json outcome(const ProcessEnd& end) {
    if (result_ && !broken_) return std::move(*result_);
    if (end.cancelled)
      throw Error(ErrorCode::kInterrupted, "interrupted; what was measured until then is kept");
    if (failure_) throw Error(failure_->code, failure_->message);
    if (broken_ && (end.timed_out || (end.status == 0 && end.signal == 0))) throw Error(*broken_);
    throw diagnose({transcript_, options_.mpirun.hosts, end, options_.mpirun.program, started_});
  }

 private:
  void hear(std::string_view line) {
    const auto report = whole_report(line);
    if (!report) {
      transcript_.add(line);
      return;
    }
    last_heard_ = SteadyClock::now();
    started_ = true;
    if (const auto* finished = std::get_if<Finished>(&*report)) {
      result_ = finished->result;
    } else if (const auto* failed = std::get_if<Failed>(&*report)) {
      note_failure(*failed);
    } else if (on_report_ != nullptr && *on_report_) {
      (*on_report_)(*report);
    }
  }

  /// Standard error: a rank that fails says so there in the same form.
  void overhear(std::string_view line) {
    const auto report = whole_report(line);
    if (const auto* failed = report ? std::get_if<Failed>(&*report) : nullptr)
      note_failure(*failed);
    else
      transcript_.add(line);
  }

  SteadyClock::time_point deadline() const {
    const bool over = result_ || failure_ || broken_;
    const Seconds most = over ? kEndingTime : (started_ ? options_.silence_timeout : options_.start_timeout);
    return last_heard_ + std::chrono::duration_cast<SteadyClock::duration>(most);
  }

  /// Nothing also where the line is cut short. Most often the job is about to end then, and why is still to
  /// be heard: mpirun, when it is ended or a rank fails, drops what rank 0 was about to say.
  std::optional<LaunchReport> whole_report(std::string_view line) {
    try {
      return report_from_line(line);
    } catch (const Error& error) {
      if (!broken_) broken_ = error;
      return {};
    }
  }

  /// Of several ranks' failures the cause counts, not that others lost sight of the rank that had it.
  void note_failure(const Failed& failed) {
    if (!failure_ || (failure_->code == ErrorCode::kPeerLost && failed.code != ErrorCode::kPeerLost))
      failure_ = failed;
  }

  const LaunchOptions options_;
  const Cancellation& cancellation_;
  const LaunchReportHandler* on_report_ = nullptr;  // while somebody listens
  SteadyClock::time_point last_heard_;
  bool started_ = false;
  Transcript transcript_;
  std::optional<nlohmann::json> result_;
  std::optional<Failed> failure_;
  std::optional<Error> broken_;  // what is wrong with the first report that could not be read
  const ProcessHooks hooks_{[this](std::string_view line) { hear(line); },
                            [this](std::string_view line) { overhear(line); },
                            [this] { return std::optional(deadline()); }};
  Process process_;  // last: it is ended while there is still who hears it
};

void LaunchOptions::check() const {
  check_seconds("start_timeout", start_timeout);
  check_seconds("silence_timeout", silence_timeout);
}

LaunchedJob::LaunchedJob(const nlohmann::json& order, const LaunchOptions& options,
                         Cancellation& cancellation) {
  options.check();
  if (cancellation.requested())
    throw Error(ErrorCode::kInterrupted, "interrupted before anything was started");
  impl_ = std::make_unique<Impl>(order, options, cancellation);
}

LaunchedJob::~LaunchedJob() = default;

void LaunchedJob::tell(const nlohmann::json& order) { impl_->tell(order); }

void LaunchedJob::listen(const LaunchReportHandler& on_report, const std::function<bool()>& enough) {
  const std::optional<ProcessEnd> end = impl_->listen(on_report, enough);
  if (!end) return;
  impl_->outcome(*end);
  throw Error(ErrorCode::kUnavailable, "the ranks ended before they had reported what they were asked for");
}

nlohmann::json LaunchedJob::finish(const LaunchReportHandler& on_report) {
  return impl_->outcome(impl_->listen(on_report, {}).value());
}

nlohmann::json launch(const nlohmann::json& order, const LaunchOptions& options,
                      const LaunchReportHandler& on_report, Cancellation& cancellation) {
  return LaunchedJob(order, options, cancellation).finish(on_report);
}

}  // namespace commtune::api
