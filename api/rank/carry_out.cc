#include "api/rank/carry_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

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
                   const std::function<bool()>& stop_requested) {
  // Before the probe: so a tool that is missing is known at once, and Ctrl-C ends the probe on all ranks
  // alike.
  json tools = json::array();
  if (order.compare) {
    if (transport.peers().rank == 0) reporter.report(Progressed{"what other tools say of a link", 0, {}});
    for (const probes::ToolResult& tool : probes::compare_with_tools(transport))
      tools.push_back(probes::to_json(tool));
  }
  ReportingSink sink(order, reporter, stop_requested);
  const probes::ProbeResult result = probes::probe(transport, order.options, sink);
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
            {"rest_seconds", result.split.rest.count()}}},
          {"traffic_bytes", result.traffic.count},
          {"tools", std::move(tools)}};
}

/// Turns an engine's progress into reports: how far it is, and how long the timed iterations took here.
class RunWatch {
 public:
  RunWatch(const Reporter& reporter, const RunOptions& options, const std::function<bool()>& stop_requested)
      : reporter_(reporter), options_(options), stop_requested_(stop_requested) {}

  void hear(const RunProgress& progress) {
    const auto now = Clock::now();
    const bool timed = progress.phase == RunProgress::Phase::kTiming && progress.done > 0;
    if (timed && last_) reporter_.report(Found{"iteration", {{"seconds", Seconds(now - *last_).count()}}});
    last_ = now;
    const int all = std::max(1, options_.check_iterations + options_.warmup + options_.iterations);
    reporter_.report(
        Progressed{fmt::format("{} {}/{}", name(progress.phase), progress.done, progress.total),
                   std::clamp(static_cast<double>(before(progress.phase) + progress.done) / all, 0.0, 1.0),
                   {}});
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
  int before(RunProgress::Phase phase) const {
    switch (phase) {
      case RunProgress::Phase::kAgreeing:
      case RunProgress::Phase::kChecking:
        return 0;
      case RunProgress::Phase::kWarming:
        return options_.check_iterations;
      case RunProgress::Phase::kTiming:
        return options_.check_iterations + options_.warmup;
    }
    return 0;
  }

  const Reporter& reporter_;
  const RunOptions& options_;
  const std::function<bool()>& stop_requested_;
  std::optional<Deadline> last_;
};

json carry_out_one(const RunOrder& order, Transport& transport, const Reporter& reporter,
                   const std::function<bool()>& stop_requested) {
  RunWatch watch(reporter, order.options, stop_requested);
  const bool speaks = transport.peers().rank == 0;
  const auto patience = std::chrono::ceil<Clock::duration>(order.options.timeout);
  const probes::Facts facts = probes::gather_facts(transport, Clock::now() + patience);
  if (speaks) reporter.report(Found{"facts", {{"facts", facts}}});
  const RunReport report =
      run_plan(transport, order.plan, order.profile, order.options,
               speaks ? std::function([&](const RunProgress& progress) { watch.hear(progress); })
                      : std::function<void(const RunProgress&)>());
  return {{"report", commtune::to_json(report)}};
}

}  // namespace

json carry_out(const Order& order, Transport& transport, const Reporter& reporter,
               const std::function<bool()>& stop_requested) {
  return std::visit([&](const auto& one) { return carry_out_one(one, transport, reporter, stop_requested); },
                    order);
}

}  // namespace commtune::api
