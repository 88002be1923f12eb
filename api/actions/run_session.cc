#include "api/actions/run_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "api/actions/run_record.h"
#include "api/error_status.h"
#include "executor/base/random_digits.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::api {
namespace {

using SteadyClock = std::chrono::steady_clock;

void check_room(const RunRequest& request) {
  const int offered = known_ranks(request.placing.hosts), wanted = ranks_of(request.job.plan);
  if (offered == 0 || offered >= wanted) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("plan {} is for {} ranks, the hosts offer {}: name hosts with {} slots in all, or "
                          "tune again with --workers",
                          digest(request.job.plan), wanted, offered, wanted));
}

/// The request on the first hosts of its placing, with the session's longest transfer.
RunRequest settled(RunRequest request) {
  request.placing.hosts = first_ranks(std::move(request.placing.hosts), ranks_of(request.job.plan));
  request.options.chunk = request.chunk();
  return request;
}

SessionOrder order_for(const RunRequest& request) {
  SessionOrder order;
  order.network = request.placing.network;
  order.workers = request.job.plan.workers;
  order.profile = request.job.profile;
  order.result = request.options.result;
  order.timeout = request.options.timeout;
  order.chunk = request.chunk();
  order.device = request.options.device;
  order.pace = pace_of(request);
  order.subnet = request.placing.subnet;
  order.network_options = request.placing.network_options;
  return order;
}

/// What rank 0 says of one plan, until it is over.
class PlanReports {
 public:
  PlanReports(const Context& context, RunRecord& record) : context_(context), record_(record) {}

  void hear(const LaunchReport& report) {
    if (const auto* progress = std::get_if<Progressed>(&report)) context_.progress(*progress);
    const auto* found = std::get_if<Found>(&report);
    if (found == nullptr) return;
    const JsonPlace place(found->value);
    if (found->kind == "iteration") {
      record_.add(Seconds{found->value.at("seconds").get<double>()});
    } else if (found->kind == "report") {
      report_ = run_report_from_json(found->value.at("report"));
    } else if (found->kind == "refused") {
      const JsonPlace code = place["code"], message = place["message"];
      refusal_.emplace(error_code_of(code.name()), message.text());
    }
  }
  bool is_over() const { return report_ || refusal_; }

  /// Puts the end on record.
  void end() {
    if (refusal_) throw Error(*refusal_);
    record_.finish(std::move(*report_));
  }

 private:
  const Context& context_;
  RunRecord& record_;
  std::optional<RunReport> report_;
  std::optional<Error> refusal_;
};

}  // namespace

RunSession::RunSession(int ranks) : wanted_(ranks), group_(random_digits().substr(0, 16)) {}

RunSession::~RunSession() { end(); }

bool RunSession::is_there_for(const RunRequest& request) const {
  return job_ && share_a_session(*first_, request) && ranks_of(request.job.plan) <= ranks_;
}

void RunSession::start(Context& context, const RunRequest& request) {
  Placing placing = request.placing;
  const int offered = known_ranks(placing.hosts);
  ranks_ = std::max(wanted_, ranks_of(request.job.plan));
  if (offered > 0) ranks_ = std::min(ranks_, offered);
  placing.hosts = first_ranks(std::move(placing.hosts), ranks_);
  if (starts_ == 0) say_notes(context, placing.hosts);
  ++starts_;
  job_ = std::make_unique<LaunchedJob>(to_json(Order(order_for(request))),
                                       launch_options(context, placing, ranks_), context.cancellation);
  first_ = request;
  bool are_ready = false;
  const auto hear = [&](const LaunchReport& report) {
    const auto* found = std::get_if<Found>(&report);
    if (found == nullptr || found->kind != "facts") return;
    facts_ = facts_from_json(found->value);
    are_ready = true;
  };
  try {
    job_->listen(hear, [&] { return are_ready; });
  } catch (...) {
    job_.reset();
    throw;
  }
}

void RunSession::measure(const Context& context, const RunRequest& request, RunRecord& record) {
  PlanReports reports(context, record);
  try {
    job_->tell(next_plan_to_json(PlannedRun{request.job.plan, request.options}));
    job_->listen([&](const LaunchReport& report) { reports.hear(report); },
                 [&] { return reports.is_over(); });
  } catch (...) {
    job_.reset();
    throw;
  }
  reports.end();
}

RunSession::Ran RunSession::run(Context& context, const RunRequest& request) {
  request.options.check();
  request.placing.check();
  check_room(request);
  const RunRequest own = settled(request);
  RunRecord record(context, own, group_);
  Ran ran;
  try {
    if (!is_there_for(request)) {
      end();
      const SteadyClock::time_point begin = SteadyClock::now();
      start(context, request);
      ran.starting = SteadyClock::now() - begin;
    }
    record.compare(facts_);
    for (const std::string& difference : record.outcome().differences)
      context.note(difference_note(difference));
    measure(context, own, record);
  } catch (const Error& error) {
    record.fail(error);
    throw;
  } catch (const std::exception& error) {
    const Error failure(ErrorCode::kUnavailable, error.what());
    record.fail(failure);
    throw Error(failure);
  }
  ran.outcome = record.outcome();
  return ran;
}

void RunSession::end() noexcept {
  if (!job_) return;
  try {
    job_->tell(next_plan_to_json(std::nullopt));
    job_->finish({});
  } catch (const std::exception&) {
    // All runs have their ends; the job's destructor sees to the ranks.
  }
  job_.reset();
}

}  // namespace commtune::api
