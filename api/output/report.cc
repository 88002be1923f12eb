#include "api/output/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/output/table.h"
#include "perfmodel/cost/doubtful_fits.h"
#include "perfmodel/plan.h"
#include "tuner/check.h"

namespace commtune::api {
namespace {

std::string quality(const FitQuality& quality) { return fmt::format("{:.4f}", quality.r_squared); }

/// The piece that holds for the largest messages says the bandwidth, the first one the latency.
void add_fit_row(Table& table, const std::string& what, const std::string& setting, const Fit& fit) {
  if (fit.curve.empty()) return;
  const auto& pieces = fit.curve.pieces();
  table.add({what, setting, format_time(pieces.front().alpha), format_bandwidth(pieces.back().beta),
             std::to_string(pieces.size()),
             fmt::format("{} - {}", format_size(fit.smallest), format_size(fit.largest)),
             quality(fit.quality), percent(fit.quality.median_relative), percent(fit.quality.p90_relative),
             fit.deviation.any() ? percent(fit.deviation.largest()) : "-"});
}

/// Both stages, on all ranks of the cluster.
bool is_whole_road(const OperationFit& fit, const Cluster& cluster) {
  return (fit.operation == Operation::kAllReduce || fit.operation == Operation::kPushPull) &&
         fit.workers == cluster.ranks();
}

bool any_doubt(const tuner::Answer& answer) {
  return std::any_of(answer.ranking.begin(), answer.ranking.end(),
                     [](const tuner::Entry& entry) { return entry.doubt.has_value(); });
}

std::string doubt_text(const tuner::Entry& entry) {
  if (!entry.doubt) return "";
  return "± " + format_time((entry.doubt->high - entry.doubt->low) / 2);
}

/// What was run before the answer was given, where this is the same plan.
const tuner::CheckedPlan* checked_as(const tuner::Answer& answer, const tuner::Entry& entry) {
  if (!answer.check) return nullptr;
  const auto found = std::ranges::find(answer.check->plans, digest(entry.plan), &tuner::CheckedPlan::digest);
  return found == answer.check->plans.end() ? nullptr : &*found;
}

std::string measured_text(const tuner::Answer& answer, const tuner::Entry& entry) {
  if (entry.measured)
    return format_time(entry.measured->median) + " ± " + format_time(entry.measured->half_width);
  if (!entry.failure.empty()) return "failed";
  const tuner::CheckedPlan* const checked = checked_as(answer, entry);
  return checked == nullptr ? "" : format_time(checked->measured) + " ± " + format_time(checked->half_width);
}

std::string verdicts(const nlohmann::json& links) {
  std::string out;
  const auto found = links.find("verdicts");
  if (found == links.end() || !found->is_array()) return out;
  for (const auto& verdict : *found)
    out += "warning: " + verdict.value("text", std::string("a link departs from its class")) + "\n";
  return out;
}

/// "4.0 Gb/s, 52 us" of each pair of hosts, rows send to columns; nothing for fewer than two hosts, or for
/// more than a screen holds.
std::string link_matrix(const nlohmann::json& links) {
  constexpr std::size_t kWidest = 16;
  const auto hosts = links.value("hosts", std::vector<std::string>{});
  if (hosts.size() < 2 || hosts.size() > kWidest) return {};
  std::vector<std::vector<std::string>> cells(hosts.size(), std::vector<std::string>(hosts.size(), "-"));
  for (const auto& link : links.value("links", nlohmann::json::array())) {
    const double beta = link.value("beta_seconds_per_byte", 0.0);
    cells.at(link.at("from").get<std::size_t>()).at(link.at("to").get<std::size_t>()) =
        (beta > 0 ? format_bandwidth(SecondsPerByte{beta}) : "-") + ", " +
        time_or_dash(Seconds{link.value("latency_seconds", 0.0)});
  }
  std::vector<Table::Column> columns{{"from \\ to", Align::kLeft}};
  for (const std::string& host : hosts) columns.push_back({host});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::vector<std::string> row{hosts[i]};
    row.insert(row.end(), cells[i].begin(), cells[i].end());
    table.add(std::move(row));
  }
  return "\n" + table.text();
}

/// What other tools say of a link beside what the probe found on the same one.
std::string comparison(const ProbeOutcome& outcome) {
  if (outcome.tools.empty()) return {};
  const auto hosts = outcome.links.value("hosts", std::vector<std::string>{});
  const auto ours = [&](const probes::ToolResult& tool, const char* what) {
    for (const auto& link : outcome.links.value("links", nlohmann::json::array())) {
      if (hosts.at(link.at("from").get<std::size_t>()) == tool.from &&
          hosts.at(link.at("to").get<std::size_t>()) == tool.to)
        return link.value(what, 0.0);
    }
    return 0.0;
  };
  Table table({{"link", Align::kLeft}, {"tool", Align::kLeft}, {"tool says"}, {"we say"}, {"differs by"}});
  std::vector<std::string> problems;
  bool any = false;
  for (const probes::ToolResult& tool : outcome.tools) {
    const bool says = tool.problem.empty();
    if (!says) {
      std::string line = fmt::format("note: {} was not compared: {}\n", tool.tool, tool.problem);
      if (std::find(problems.begin(), problems.end(), line) == problems.end())
        problems.push_back(std::move(line));
    }
    if (tool.from == tool.to) continue;  // not even tried between two hosts
    any = true;
    if (says && tool.bytes_per_second == 0) {  // it measures the way there and back
      const double theirs = tool.round_trip.value_or(Seconds{0}).count() / 2,
                   latency = ours(tool, "latency_seconds");
      table.add({tool.from + " -> " + tool.to, tool.tool, format_time(Seconds{theirs}),
                 latency > 0 ? format_time(Seconds{latency}) : "-",
                 latency > 0 && theirs > 0 ? signed_percent(latency / theirs - 1) : "-"});
      continue;
    }
    const double beta = ours(tool, "beta_seconds_per_byte");
    table.add({tool.from + " -> " + tool.to, tool.tool,
               says ? format_bandwidth(SecondsPerByte{1 / tool.bytes_per_second}) : "-",
               beta > 0 ? format_bandwidth(SecondsPerByte{beta}) : "-",
               says && beta > 0 ? signed_percent(1 / (beta * tool.bytes_per_second) - 1) : "-"});
  }
  return (any ? "\n" + table.text() : std::string()) + fmt::format("{}", fmt::join(problems, ""));
}

/// "time: 305 ms for all pairs of hosts, ..."; empty where the ranks did not say.
std::string time_split(const nlohmann::json& split) {
  if (split.empty()) return {};
  const auto time = [&](const char* key) { return format_time(Seconds{split.value(key, 0.0)}); };
  return fmt::format(
      "time: {} for all pairs of hosts, {} for links, {} for the first sizes of roads, {} to refine them, {} "
      "to plan on what was known by then, {} for the rest\n",
      time("survey_seconds"), time("links_seconds"), time("first_sizes_seconds"), time("refinement_seconds"),
      time("planning_seconds"), time("rest_seconds"));
}

bool rests_on_doubtful(const tuner::Answer& answer, const tuner::Entry& entry) {
  return std::ranges::any_of(answer.doubtful, [&](const tuner::DoubtfulFit& fit) {
    return std::ranges::find(fit.methods, entry.method) != fit.methods.end();
  });
}

/// What the question marks of a ranking mean.
std::string doubtful_text(const tuner::Answer& answer) {
  if (answer.doubtful.empty()) return {};
  std::string out = "? rests on doubtful fits, which a probe with a larger --budget may mend:\n";
  for (const tuner::DoubtfulFit& fit : answer.doubtful)
    out += fmt::format("  {}: {}\n", fit.fit, to_string(fit.quality));
  return out + "\n";
}

/// "216 ms; 209 ms at the edge of the fits' doubt".
std::string bound_text(const tuner::Answer& answer) {
  std::string bound = format_time(answer.bound);
  if (!answer.bound_low || *answer.bound_low >= answer.bound) return bound;
  return fmt::format("{}; {} at the edge of the fits' doubt", bound, format_time(*answer.bound_low));
}

/// Of a PlanAnswer of api/openapi.yaml.
std::string rate_in(const nlohmann::json& answer) {
  const nlohmann::json& rate = answer.at("samples_per_second");
  return rate_text(rate.is_null() ? std::nullopt : std::optional(rate.get<double>()));
}

}  // namespace

std::string percent(double ratio) { return fmt::format("{:.1f} %", 100 * ratio); }
std::string signed_percent(double ratio) { return fmt::format("{:+.1f} %", 100 * ratio); }

std::string count(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string batch_text(int batch) { return batch > 0 ? std::to_string(batch) : "unknown"; }

std::string rate_text(const std::optional<double>& samples_per_second) {
  if (!samples_per_second) return "unknown";
  return *samples_per_second < 10 ? fmt::format("{:.2g}", *samples_per_second) : count(*samples_per_second);
}

std::string when(Timestamp time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", std::chrono::floor<std::chrono::seconds>(time));
}

std::string fit_table(const Cluster& cluster, FitDetail detail) {
  Table table({{"what", Align::kLeft},
               {"how", Align::kLeft},
               {"start-up"},
               {"rate"},
               {"pieces"},
               {"sizes"},
               {"R²"},
               {"median error"},
               {"p90"},
               {"between sizes"}});
  for (const auto& [kind, link] : cluster.links) {
    const std::string what = "link " + to_string(kind);
    add_fit_row(table, what, "alone", link.alone);
    add_fit_row(table, what, "streamed", link.streamed);
    add_fit_row(table, what, "duplex", link.duplex);
  }
  std::size_t left_out = 0;
  for (const OperationFit& fit : cluster.operations) {
    if (detail == FitDetail::kRoads && !is_whole_road(fit, cluster)) {
      ++left_out;
      continue;
    }
    const std::string what =
        fmt::format("{}, {}, {} workers", to_string(fit.operation), describe(fit.road), fit.workers);
    add_fit_row(table, what, "alone", fit.alone);
    add_fit_row(table, what, "streamed", fit.streamed);
  }
  for (const NcclFit& fit : cluster.nccl) {
    const std::string what =
        fmt::format("{}, NCCL {}, {} workers", to_string(fit.operation),
                    fit.tuning.is_own_choice() ? "as it chooses" : to_string(fit.tuning), fit.workers);
    add_fit_row(table, what, "alone", fit.alone);
  }
  std::string out = table.text();
  if (left_out > 0) out += fmt::format("and {} fits of single stages and smaller groups\n", left_out);
  const auto rate = [](const Scalar& scalar) { return format_bandwidth(SecondsPerByte{scalar.value}); };
  out += fmt::format("summing {}, copying {}, compute slows by {} while bytes move, jitter {}\n",
                     rate(cluster.reduce_seconds_per_byte), rate(cluster.copy_seconds_per_byte),
                     percent(cluster.interference.value), format_time(Seconds{cluster.jitter_seconds.value}));
  if (cluster.gpu.launch_seconds.value > 0) {
    out += fmt::format(
        "on a GPU: a kernel's launch {}, from the host {}, to the host {}, traffic slows by {} while layers "
        "run\n",
        format_time(Seconds{cluster.gpu.launch_seconds.value}), rate(cluster.gpu.upload_seconds_per_byte),
        rate(cluster.gpu.download_seconds_per_byte), percent(cluster.contention.value));
  }
  for (const auto& [wire, costs] : cluster.casts)
    out +=
        fmt::format("casting to {0} and back {1}, summing {0} {2} (of bytes on the wire)\n", to_string(wire),
                    rate(costs.cast_seconds_per_byte), rate(costs.reduce_seconds_per_byte));
  if (cluster.head_of_line_seconds.value > 0 || cluster.connection_head_of_line_seconds.value > 0) {
    out += fmt::format("head-of-line wait of what is urgent: {} at a busy server, {} on a busy connection\n",
                       format_time(Seconds{cluster.head_of_line_seconds.value}),
                       format_time(Seconds{cluster.connection_head_of_line_seconds.value}));
  }
  return out;
}

std::string probe_report(const ProbeOutcome& outcome) {
  std::string out = fmt::format("cluster {}: {} ranks on {} host{} over {}, probed in {} (fit {})\n\n",
                                outcome.cluster.name, outcome.cluster.ranks(), outcome.cluster.hosts.size(),
                                outcome.cluster.hosts.size() == 1 ? "" : "s", outcome.cluster.transport,
                                format_time(outcome.elapsed), outcome.fit);
  out += fit_table(outcome.cluster, FitDetail::kRoads);
  out += link_matrix(outcome.links);
  out += comparison(outcome);
  out += verdicts(outcome.links);
  out += time_split(outcome.budget_split);
  for (const std::string& note : outcome.notes) out += fmt::format("note: {}\n", note);
  if (!outcome.would_measure.empty()) {
    const std::size_t shown = std::min<std::size_t>(3, outcome.would_measure.size());
    out += fmt::format("more time would measure: {}{}\n",
                       fmt::join(outcome.would_measure.begin(),
                                 outcome.would_measure.begin() + static_cast<std::ptrdiff_t>(shown), "; "),
                       outcome.would_measure.size() > shown
                           ? fmt::format("; and {} more", outcome.would_measure.size() - shown)
                           : "");
  }
  return out;
}

std::string ranking_report(const TuneOutcome& outcome) {
  const tuner::Answer& answer = outcome.answer;
  std::string out = fmt::format("{} (batch {}) on cluster {}: {} workers, {}; one worker alone takes {}\n\n",
                                answer.model, batch_text(answer.batch), answer.cluster, answer.workers,
                                describe_fit(outcome.fit, outcome.fits), format_time(answer.compute));
  const bool any_measured = std::ranges::any_of(answer.ranking, [&](const tuner::Entry& entry) {
    return entry.measured.has_value() || checked_as(answer, entry) != nullptr;
  });
  std::vector<Table::Column> columns{{"method", Align::kLeft}, {"road", Align::kLeft}, {"iteration"}};
  if (any_doubt(answer)) columns.push_back({"90 % range"});
  if (any_measured) columns.push_back({"measured"});
  const bool cast = answer.wire != WireFormat::kAsIs;
  for (const char* title : {"samples/s", "speed-up", "exposed", "messages"}) columns.push_back({title});
  if (!cast) columns.push_back({"above bound"});
  columns.push_back({"plan"});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < answer.ranking.size(); ++i) {
    const tuner::Entry& entry = answer.ranking[i];
    std::vector<std::string> cells{
        entry.title, describe_road(entry.plan),
        format_time(entry.prediction.iteration) + (rests_on_doubtful(answer, entry) ? " ?" : "")};
    if (any_doubt(answer)) cells.push_back(doubt_text(entry));
    if (any_measured) cells.push_back(measured_text(answer, entry));
    const auto id = outcome.plans.find(entry.method);
    cells.insert(cells.end(), {rate_text(entry.samples_per_second), fmt::format("{:.2f}", entry.speedup),
                               time_or_dash(entry.prediction.exposed), std::to_string(entry.messages)});
    if (!cast) cells.push_back(percent(entry.gap));
    cells.push_back(id == outcome.plans.end() ? "" : std::to_string(id->second));
    table.add(std::move(cells), i == answer.chosen);
  }
  out += table.text();
  out +=
      cast ? fmt::format(
                 "gradients are cast to {0} while they travel and summed in {0}: not lossless, so no "
                 "bound is beside them\n\n",
                 to_string(answer.wire))
           : fmt::format(
                 "lower bound: {} (of lossless plans, under the fitted costs and over the roads priced)\n\n",
                 bound_text(answer));
  out += to_text(outcome.marks);
  if (answer.check) out += tuner::check_text(answer) + "\n";
  out += doubtful_text(answer) + answer.reason + "\n";
  if (!answer.complete)
    out += "incomplete: the time limit passed before everything was tried; there may be a better plan\n";
  for (const tuner::Entry& entry : answer.ranking)
    if (!entry.failure.empty()) out += fmt::format("{}: {}\n", entry.title, entry.failure);
  return out;
}

std::string candidates_report(const nlohmann::json& compared) {
  Table table({{"candidate", Align::kLeft},
               {"workers"},
               {"method", Align::kLeft},
               {"road", Align::kLeft},
               {"iteration"},
               {"samples/s"},
               {"speed-up"},
               {"plan"}});
  std::string notes;
  const auto note = [&](const std::string& name, const std::string& text) {
    notes += fmt::format("{}: {}\n", name, text);
  };
  for (const nlohmann::json& candidate : compared.at("candidates")) {
    const auto name = candidate.at("name").get<std::string>();
    const nlohmann::json& answer = candidate.at("answer");
    if (answer.at("status") != "planned") {
      table.add({name, "-", "", "", "-", "-", "-", ""});
      note(name, "no answer: " + answer.at("reason").get<std::string>());
      continue;
    }
    const auto id = answer.at("id").get<RowId>();
    table.add({name, std::to_string(answer.at("workers").get<int>()), answer.at("title").get<std::string>(),
               answer.at("road").get<std::string>(),
               format_time(Seconds{answer.at("iteration").at("seconds").get<double>()}), rate_in(answer),
               fmt::format("{:.2f}", answer.at("speedup").get<double>()), id > 0 ? std::to_string(id) : ""},
              candidate.at("name") == compared.at("best"));
    for (const nlohmann::json& text : answer.at("notes")) note(name, text.get<std::string>());
  }
  return table.text() + "\n" + notes +
         (compared.at("best").is_null()
              ? "no candidate has an answer\n"
              : fmt::format("the most samples per second: {}\n", compared.at("best").get<std::string>()));
}

std::string explanation(const TuneOutcome& outcome) {
  const tuner::Answer& answer = outcome.answer;
  const bool doubt = any_doubt(answer);
  std::vector<Table::Column> columns{
      {"method", Align::kLeft}, {"bound by", Align::kLeft}, {"compute"}, {"communication"}, {"exposed"},
      {"basis", Align::kLeft}};
  if (doubt) columns.insert(columns.end(), {{"best in"}, {"regret"}});
  Table methods(std::move(columns));
  for (std::size_t i = 0; i < answer.ranking.size(); ++i) {
    const tuner::Entry& entry = answer.ranking[i];
    const Prediction& p = entry.prediction;
    std::vector<std::string> cells{entry.title,
                                   to_string(p.binding),
                                   format_time(p.compute),
                                   format_time(p.communication),
                                   time_or_dash(p.exposed),
                                   std::string(p.basis == Basis::kMeasured ? "measured" : "formula") +
                                       (p.extrapolated ? ", beyond the probed sizes" : "")};
    if (doubt) {
      cells.push_back(entry.doubt ? percent(entry.doubt->probability_best) : "-");
      cells.push_back(entry.doubt ? percent(entry.doubt->expected_regret) : "-");
    }
    methods.add(std::move(cells), i == answer.chosen);
  }
  Table roads({{"road", Align::kLeft}, {"bound"}, {"at the doubt's edge"}, {"costs from", Align::kLeft}});
  for (const tuner::RoadBound& bound : answer.bounds)
    roads.add({describe(bound.road), format_time(bound.bound),
               bound.bound_low ? format_time(*bound.bound_low) : "-", bound.explanation});
  std::string out =
      fmt::format("What binds each method{}:\n",
                  doubt ? " (\"best in\": share of the draws from the fits' doubt in which it wins)" : "") +
      methods.text();
  if (!answer.bounds.empty())
    out += "\nUnder these costs no lossless plan on a road ends earlier than its bound:\n" + roads.text();
  if (answer.intensity > 0)
    out +=
        fmt::format("\nmodel intensity: {} operations per sample per parameter\n", count(answer.intensity));
  return out;
}

std::string run_table(const std::vector<RunOutcome>& outcomes) {
  Table table(
      {{"method", Align::kLeft}, {"predicted"}, {"measured"}, {"95 %"}, {"error"}, {"waited"}, {"run"}});
  for (const RunOutcome& outcome : outcomes) {
    const RunReport& report = outcome.report;
    const auto error = outcome.error();
    table.add({report.method, time_or_dash(outcome.predicted), format_time(Seconds{report.median_seconds}),
               "± " + format_time(Seconds{report.half_width_seconds}), error ? signed_percent(*error) : "-",
               format_time(Seconds{report.waited_seconds}), std::to_string(outcome.run)});
  }
  return table.text();
}

namespace {

/// What gradients travelled as, where they were cast, and what that did to them.
std::string wire_text(const RunReport& report) {
  if (report.wire.empty()) return {};
  const RankReport& first = report.ranks.front();
  const std::size_t iterations = std::max<std::size_t>(1, report.iteration_seconds.size());
  std::string out = fmt::format("gradients travelled as {}: not lossless; rank 0 sent {} an iteration\n",
                                report.wire, format_size(Bytes{first.sent_bytes / iterations}));
  if (const std::uint64_t lost = overflows(report); lost > 0)
    out += fmt::format(
        "warning: {} elements of finite gradients came back infinite or as no number: {} has no room for "
        "them\n",
        count(static_cast<double>(lost)), report.wire);
  return out;
}

}  // namespace

std::string run_report(const RunOutcome& outcome) {
  const RunReport& report = outcome.report;
  std::string out = fmt::format(
      "replay of {} with {} on {} ranks over {}: {} timed iterations; layers were {}, gradients were "
      "made up, nothing was trained\n",
      report.model, report.method, report.ranks.size(), report.transport, report.iteration_seconds.size(),
      outcome.device == DeviceKind::kHost ? "waits" : "kernels of their length");
  if (report.check.iterations > 0)
    out += fmt::format(
        "gradients: {} tensors compared in full with a serial reference, {} elements in timed "
        "iterations; all equal\n",
        count(static_cast<double>(report.check.tensors)),
        count(static_cast<double>(report.check.spot_elements)));
  out += wire_text(report);
  for (const RankReport& rank : report.ranks)
    if (!rank.trace.empty())
      out += fmt::format("trace of rank {} on {}: {}\n", rank.rank, rank.host, rank.trace);
  return out;
}

}  // namespace commtune::api
