// `tune scale` and `tune map`: what would happen with more workers, more servers, another network.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "api/actions/whatif.h"
#include "api/cli/commands.h"
#include "api/cli/job_flags.h"
#include "api/output/whatif_csv.h"
#include "api/output/whatif_report.h"
#include "api/series.h"
#include "executor/base/new_file.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

struct WhatIfFlags {
  JobFlags job;
  std::string workers, servers, bandwidth, latency, placement = "colocated", method, csv;
};

/// Table or JSON to standard output, CSV to its file.
template <typename Outcome>
void answer(const Session& session, const WhatIfFlags& flags, Work& work, const Outcome& outcome,
            const std::string& csv, const std::string& report) {
  work.clear_progress();
  if (!flags.csv.empty()) write_file(flags.csv, csv);
  if (session.json) {
    session.print_json(to_json(outcome));
  } else {
    session.print(report);
  }
}

/// The one number of workers that a sweep over something else is made for.
int single(const std::vector<int>& workers) {
  if (workers.size() == 1) return workers.front();
  throw Error(ErrorCode::kBadInput, "--workers: must be one number when --servers is swept");
}

void run_servers(const Session& session, const WhatIfFlags& flags) {
  Work work(session);
  ServersRequest request;
  request.job = flags.job.question(work);
  request.placement = flags.placement == "dedicated" ? Placement::kDedicated : Placement::kColocated;
  request.servers = parse_flag("--servers", flags.servers, count_series);
  if (!flags.workers.empty())
    request.job.allocation.workers = single(parse_flag("--workers", flags.workers, count_series));
  const InterruptGuard guard(*session.cancellation);
  const ServersOutcome outcome = servers_job(work.context(), request);
  answer(session, flags, work, outcome, to_csv(outcome.points), servers_report(outcome));
}

void run_scale(const Session& session, const WhatIfFlags& flags) {
  if (!flags.servers.empty()) {
    run_servers(session, flags);
    return;
  }
  Work work(session);
  ScaleRequest request;
  request.job = flags.job.question(work);
  request.workers = parse_flag("--workers", flags.workers.empty() ? "1..2048" : flags.workers, count_series);
  const InterruptGuard guard(*session.cancellation);
  const ScaleOutcome outcome = scale_job(work.context(), request);
  answer(session, flags, work, outcome, to_csv(outcome.curves), scale_report(outcome, flags.method));
}

void run_map(const Session& session, const WhatIfFlags& flags) {
  Work work(session);
  MapRequest request;
  request.job = flags.job.question(work);
  if (!flags.workers.empty()) request.workers = parse_flag("--workers", flags.workers, count_series);
  if (!flags.latency.empty()) request.latencies = parse_flag("--latency", flags.latency, duration_series);
  request.per_byte = flags.bandwidth.empty() ? usual_rates(work.store(), request.job.cluster)
                                             : parse_flag("--bandwidth", flags.bandwidth, rate_series);
  if (flags.workers.empty() && flags.latency.empty()) request.workers = count_series("2..64");
  const auto several = [](const auto& axis) { return axis.size() > 1 ? 1 : 0; };
  if (several(request.workers) + several(request.latencies) + several(request.per_byte) > 2)
    throw Error(ErrorCode::kBadInput,
                "--workers, --latency, --bandwidth: at most two of them may have several values; a map has "
                "two axes");
  const InterruptGuard guard(*session.cancellation);
  const MapOutcome outcome = map_job(work.context(), request);
  answer(session, flags, work, outcome, to_csv(outcome.cells), map_report(outcome));
}

}  // namespace

void add_scale_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand(
      "scale", "Show the speed-up of every method over the number of workers, or of servers");
  command->footer(
      "Examples:\n"
      "  tune scale resnet50 --cluster lab --workers 1..2048\n"
      "  tune scale resnet50 --cluster lab --method mg-wfbp --csv curves.csv\n"
      "  tune scale bert_large --cluster lab --workers 16 --servers 0..16 --placement dedicated");
  auto flags = std::make_shared<WhatIfFlags>();
  add_job_flags(*command, flags->job);
  add_common_flags(*command, session, {"cluster"});
  command
      ->add_option("--workers", flags->workers, "numbers of workers, as 8, 1,2,6 or 1..2048, which doubles")
      ->type_name("LIST")
      ->default_str("1..2048");
  command
      ->add_option("--servers", flags->servers,
                   "sweep the servers instead, as 0..16, for one number of workers; 0 is all-reduce")
      ->type_name("LIST");
  command->add_option("--placement", flags->placement, "where the swept servers are")
      ->check(CLI::IsMember({"colocated", "dedicated"}))
      ->capture_default_str();
  command->add_option("--method", flags->method, "show this method's times in place of the best one's");
  command->add_option("--csv", flags->csv, "write all points to this file as well")->type_name("FILE");
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_scale(session, *flags); }; });
}

void add_map_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand(
      "map", "Show which method wins where: workers x bandwidth, latency x bandwidth, or workers x latency");
  command->footer(
      "Examples:\n"
      "  tune map resnet50 --cluster lab                                 2..64 workers, 1/16 to 16 times the "
      "bandwidth\n"
      "  tune map resnet50 --cluster lab --workers 4..256 --bandwidth 1Gbit..100Gbit --csv map.csv\n"
      "  tune map resnet50 --cluster lab --workers 32 --latency 1us..256us");
  auto flags = std::make_shared<WhatIfFlags>();
  add_job_flags(*command, flags->job);
  add_common_flags(*command, session, {"cluster"});
  command
      ->add_option("--workers", flags->workers, "numbers of workers, as 8, 2,6,12 or 4..256, which doubles")
      ->type_name("LIST")
      ->default_str("2..64 unless --latency is given");
  command
      ->add_option("--bandwidth", flags->bandwidth,
                   "bandwidths of the link between hosts, as 1Gbit..100Gbit or 1Gbit,25Gbit")
      ->type_name("LIST")
      ->default_str("1/16 to 16 times the fitted one");
  command->add_option("--latency", flags->latency, "latencies of the same link, as 1us..256us or 5us,50us")
      ->type_name("LIST")
      ->default_str("the fitted one");
  command->add_option("--csv", flags->csv, "write all cells to this file as well")->type_name("FILE");
  command->callback([&session, flags] { session.action = [&session, flags] { run_map(session, *flags); }; });
}

}  // namespace commtune::api
