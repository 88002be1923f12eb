#include "api/launch/launcher.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "api/launch/diagnosis.h"
#include "api/launch/srun.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// How long mpirun may take to end after the last report: it waits for daemons on hosts that may be gone.
constexpr Seconds kEndingTime{5.0};

/// What one job has said so far.
class Conversation {
 public:
  Conversation(const LaunchOptions& options, const LaunchReportHandler& on_report,
               const Cancellation& cancellation)
      : options_(options),
        on_report_(on_report),
        cancellation_(cancellation),
        last_heard_(SteadyClock::now()) {}

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
    } else if (on_report_) {
      on_report_(*report);
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
    const bool over = result_ || failure_;
    const Seconds most = over ? kEndingTime : (started_ ? options_.silence_timeout : options_.start_timeout);
    return last_heard_ + std::chrono::duration_cast<SteadyClock::duration>(most);
  }

  nlohmann::json outcome(const ProcessEnd& end) && {
    if (result_) return std::move(*result_);
    if (end.cancelled)
      throw Error(ErrorCode::kInterrupted, "interrupted; what was measured until then is kept");
    if (failure_) throw Error(failure_->code, failure_->message);
    throw diagnose({transcript_, options_.mpirun.hosts, end, options_.mpirun.program, started_});
  }

 private:
  /// Nothing also when the line is cut short by the job's being ended: mpirun may be hit by the signal while
  /// it still hands on what rank 0 wrote.
  std::optional<LaunchReport> whole_report(std::string_view line) const {
    try {
      return report_from_line(line);
    } catch (const Error&) {
      if (!cancellation_.requested()) throw;
      return {};
    }
  }

  /// Of several ranks' failures the cause counts, not that others lost sight of the rank that had it.
  void note_failure(const Failed& failed) {
    if (!failure_ || (failure_->code == ErrorCode::kPeerLost && failed.code != ErrorCode::kPeerLost))
      failure_ = failed;
  }

  const LaunchOptions& options_;
  const LaunchReportHandler& on_report_;
  const Cancellation& cancellation_;
  SteadyClock::time_point last_heard_;
  bool started_ = false;
  Transcript transcript_;
  std::optional<nlohmann::json> result_;
  std::optional<Failed> failure_;
};

void check_seconds(const char* field, Seconds value) {
  if (std::isfinite(value.count()) && value.count() > 0 && value.count() <= 1e6) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} = {} s: must be more than 0 s and at most 1e6 s", field, value.count()));
}

}  // namespace

void LaunchOptions::check() const {
  check_seconds("start_timeout", start_timeout);
  check_seconds("silence_timeout", silence_timeout);
}

nlohmann::json launch(const nlohmann::json& order, const LaunchOptions& options,
                      const LaunchReportHandler& on_report, Cancellation& cancellation) {
  options.check();
  if (cancellation.requested())
    throw Error(ErrorCode::kInterrupted, "interrupted before anything was started");
  Conversation conversation(options, on_report, cancellation);
  ProcessOptions process;
  process.argv = launch_command(options.mpirun, inspect_site());
  process.input = order.dump() + "\n";
  // mpirun of Open MPI 4.1 may crash at the end of its input while rank 0 still reads what came before.
  process.ends_input = false;
  // mpirun hands SIGUSR1 on to the ranks, where rank 0 ends in order; SIGTERM ends them at once.
  process.ending = {{SIGUSR1, std::chrono::seconds(5)}, {SIGTERM, std::chrono::seconds(10)}};
  ProcessHooks hooks;
  hooks.on_output = [&](std::string_view line) { conversation.hear(line); };
  hooks.on_error = [&](std::string_view line) { conversation.overhear(line); };
  hooks.deadline = [&] { return std::optional(conversation.deadline()); };
  const ProcessEnd end = run_process(process, hooks, cancellation);
  return std::move(conversation).outcome(end);
}

}  // namespace commtune::api
