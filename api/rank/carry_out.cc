#include "api/rank/carry_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "api/advice/plan_advisor.h"
#include "api/error_status.h"
#include "perfmodel/base/json_reader.h"
#include "probes/host/cluster_facts.h"
#include "probes/probe.h"
#include "probes/tools/comparison.h"

namespace commtune::api {
namespace {

using nlohmann::json;

std::string end_name(probes::ProbeEnd end) {
  switch (end) {
    case probes::ProbeEnd::kComplete:
      return "complete";
    case probes::ProbeEnd::kBudget:
      return "budget";
    case probes::ProbeEnd::kStopped:
      return "stopped";
    case probes::ProbeEnd::kSettled:
      return "settled";
  }
  return "complete";
}

/// What a probe finds, passed on as it comes.
class ReportingSink : public probes::EventSink {
 public:
  ReportingSink(const ProbeOrder& order, const Reporter& reporter,
                const std::function<bool()>& stop_requested)
      : order_(order), reporter_(reporter), stop_requested_(stop_requested) {}

  void on_facts(const probes::ClusterFacts& facts) override {
    reporter_.report(Found{"facts",
                           {{"name", facts.name},
                            {"transport", facts.transport},
                            {"rank_hosts", facts.rank_hosts},
                            {"facts", facts.facts},
                            {"fingerprint", probes::fingerprint(facts)}}});
  }
  std::vector<probes::ProbeSample> earlier(const probes::ClusterFacts& facts) override {
    if (probes::fingerprint(facts) != order_.earlier_fingerprint) return {};
    return order_.earlier;
  }
  void on_progress(const probes::ProbeProgress& progress) override {
    reporter_.report(Progressed{progress.what, std::clamp(progress.fraction, 0.0, 1.0),
                                Seconds{std::clamp(progress.left.count(), 0.0, 1e6)}});
  }
  void on_sample(const probes::ProbeSample& sample) override {
    reporter_.report(Found{"sample", probes::to_json(sample)});
  }
  bool stop_requested() override { return stop_requested_(); }

 private:
  const ProbeOrder& order_;
  const Reporter& reporter_;
  const std::function<bool()>& stop_requested_;
};

json carry_out_one(const ProbeOrder& order, Transport& transport, const Reporter& reporter,
                   OrderReader& /*orders*/, const std::function<bool()>& stop_requested) {
  // Before the probe: so a tool that is missing is known at once, and Ctrl-C ends the probe on all ranks
  // alike.
  json tools = json::array();
  if (order.compare) {
    if (transport.peers().rank == 0) reporter.report(Progressed{"what other tools say of a link", 0, {}});
    for (const probes::ToolResult& tool : probes::compare_with_tools(transport))
      tools.push_back(probes::to_json(tool));
  }
  ReportingSink sink(order, reporter, stop_requested);
  std::optional<PlanAdvisor> advisor;
  if (!order.profiles.empty()) {
    PlanAdvisorOptions planning;
    planning.are_all = true;
    planning.profiles = order.profiles;
    advisor.emplace(std::move(planning));
  }
  const probes::ProbeResult result =
      probes::probe(transport, order.options, sink, advisor ? &*advisor : nullptr);
  if (transport.peers().rank != 0) return {};
  return {{"cluster", commtune::to_json(result.cluster)},
          {"links", probes::to_json(result.links)},
          {"end", end_name(result.end)},
          {"would_measure", result.would_measure},
          {"notes", result.notes},
          {"elapsed_seconds", result.elapsed.count()},
          {"budget_split",
           {{"survey_seconds", result.split.survey.count()},
            {"links_seconds", result.split.links.count()},
            {"first_sizes_seconds", result.split.first_sizes.count()},
            {"refinement_seconds", result.split.refinement.count()},
            {"planning_seconds", result.split.planning.count()},
            {"rest_seconds", result.split.rest.count()}}},
          {"traffic_bytes", result.traffic.count},
          {"tools", std::move(tools)}};
}

/// Turns a run's progress into reports: how far it is, and how long the timed iterations took here.
class RunWatch {
 public:
  RunWatch(const Reporter& reporter, const std::function<bool()>& stop_requested)
      : reporter_(reporter), stop_requested_(stop_requested) {}

  /// So many iterations are all that is to be done, from now on.
  void begin(int iterations) {
    all_ = iterations;
    done_ = 0;
  }

  /// method  of the plan, where there are others
  void hear(const RunProgress& progress, const std::string& method) {
    const auto now = Clock::now();
    if (progress.phase == RunProgress::Phase::kAgreeing)
      reporter_.report(Found{"turn", {{"plan", progress.plan}}});
    else
      ++done_;
    if (progress.phase == RunProgress::Phase::kTiming && last_)
      reporter_.report(
          Found{"iteration", {{"plan", progress.plan}, {"seconds", Seconds(now - *last_).count()}}});
    last_ = now;
    std::string what = fmt::format("{} {}/{}", name(progress.phase), progress.done, progress.total);
    if (!method.empty()) what = method + ": " + what;
    reporter_.report(Progressed{
        std::move(what), std::clamp(static_cast<double>(done_) / std::max(1, all_), 0.0, 1.0), {}});
    if (stop_requested_())
      throw Error(ErrorCode::kInterrupted, "interrupted; what was measured until then is kept");
  }

 private:
  static const char* name(RunProgress::Phase phase) {
    switch (phase) {
      case RunProgress::Phase::kAgreeing:
        return "agreeing";
      case RunProgress::Phase::kChecking:
        return "checking gradients";
      case RunProgress::Phase::kWarming:
        return "warming up";
      case RunProgress::Phase::kTiming:
        return "timing";
    }
    return "running";
  }

  const Reporter& reporter_;
  const std::function<bool()>& stop_requested_;
  int all_ = 0, done_ = 0;  // iterations
  std::optional<Deadline> last_;
};

int iterations_of(const RunOptions& options) {
  return options.check_iterations + options.warmup + options.iterations;
}

int iterations_of(const RunOrder& order) {
  int all = 0;
  for (const PlannedRun& each : order.plans)
    all += iterations_of(each.options) + (order.rounds - 1) * std::min(each.options.warmup, 1);
  return all;
}

/// What the hosts are like, and on rank 0 what is to be heard of plans beside their progress.
void begin_run(Transport& transport, Seconds timeout, DeviceKind device, const Reporter& reporter,
               PlanEvents& events) {
  const auto patience = std::chrono::ceil<Clock::duration>(timeout);
  const probes::Facts facts = probes::gather_facts(transport, Clock::now() + patience, device);
  if (transport.peers().rank != 0) return;
  reporter.report(Found{"facts", {{"facts", facts}}});
  events.finished = [&reporter](std::size_t plan, const RunReport& report) {
    reporter.report(Found{"report", {{"plan", plan}, {"report", commtune::to_json(report)}}});
  };
  events.refused = [&reporter](std::size_t plan, const Refusal& refusal) {
    reporter.report(Found{
        "refused", {{"plan", plan}, {"code", error_status(refusal.code).name}, {"message", refusal.text}}});
  };
}

json carry_out_one(const RunOrder& order, Transport& transport, const Reporter& reporter,
                   OrderReader& /*orders*/, const std::function<bool()>& stop_requested) {
  RunWatch watch(reporter, stop_requested);
  watch.begin(iterations_of(order));
  TurnOptions turns;
  turns.rounds = order.rounds;
  const RunOptions& first = order.plans.front().options;
  begin_run(transport, first.timeout, first.device, reporter, turns);
  if (transport.peers().rank == 0) {
    turns.progress = [&](const RunProgress& progress) {
      watch.hear(progress, order.plans.size() > 1 ? order.plans[progress.plan].plan.method : std::string());
    };
  }
  run_plans(transport, order.plans, order.profile, turns);
  return json::object();
}

json carry_out_one(const SessionOrder& order, Transport& transport, const Reporter& reporter,
                   OrderReader& orders, const std::function<bool()>& stop_requested) {
  RunWatch watch(reporter, stop_requested);
  PlanSource source;
  source.workers = order.workers;
  source.result = order.result;
  source.timeout = order.timeout;
  source.chunk = order.chunk;
  source.device = order.device;
  begin_run(transport, order.timeout, order.device, reporter, source);
  if (transport.peers().rank == 0) {
    source.progress = [&](const RunProgress& progress) { watch.hear(progress, {}); };
    source.next = [&] {
      const std::optional<std::string> line = orders.next();
      if (!line) throw Error(ErrorCode::kPeerLost, "the program that started the ranks has gone");
      std::optional<PlannedRun> next = next_plan_from_json(parse_json(*line, "next plan"));
      if (next) watch.begin(iterations_of(next->options));
      return next;
    };
  }
  run_plans(transport, source, order.profile);
  return json::object();
}

}  // namespace

json carry_out(const Order& order, Transport& transport, const Reporter& reporter, OrderReader& orders,
               const std::function<bool()>& stop_requested) {
  return std::visit(
      [&](const auto& one) { return carry_out_one(one, transport, reporter, orders, stop_requested); },
      order);
}

}  // namespace commtune::api
