#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/actions/probe.h"
#include "api/cli/commands.h"
#include "api/cli/knob_flags.h"
#include "api/launch/srun.h"
#include "api/output/report.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

struct ProbeFlags {
  std::shared_ptr<PlacingFlags> placing;
  probes::ProbeOptions options;
  std::vector<int> servers;
  std::vector<std::string> models;
  bool fresh = false;
  bool shared_hosts = false;
  bool compare = false;
};

probes::ProbeOptions options_of(const ProbeFlags& flags) {
  probes::ProbeOptions options = flags.options;
  for (const int servers : flags.servers) options.servers.push_back(ParameterServer{servers, {}, {}});
  options.exclusive = !flags.shared_hosts;
  return options;
}

void print_next(const Session& session, const ProbeFlags& flags, const std::string& cluster) {
  session.print(fmt::format("now: tune {} --cluster {}\n",
                            flags.models.empty() ? "MODEL" : flags.models.front(), cluster));
}

/// Over every transport that works on all hosts.
void probe_all(const Session& session, Work& work, const ProbeRequest& request, const ProbeFlags& flags) {
  const InterruptGuard guard(*session.cancellation);
  const TransportProbes probes = probe_all_transports(work.context(), request);
  work.clear_progress();
  if (session.json) {
    session.print_json(to_json(probes));
  } else {
    for (const ProbeOutcome& outcome : probes.outcomes) session.print(probe_report(outcome) + "\n");
    print_next(session, flags, request.cluster);
  }
}

void run_probe(const Session& session, const ProbeFlags& flags) {
  Work work(session);
  ProbeRequest request;
  request.cluster = work.settings().cluster;
  request.placing = flags.placing->placing(work.settings());
  request.options = options_of(flags);
  request.models = flags.models;
  request.fresh = flags.fresh;
  request.compare = flags.compare;
  if (flags.placing->dry_run) {
    const LaunchOptions launch = launch_options(work.context(), request.placing, 0);
    session.print(quoted(launch_command(launch.mpirun, inspect_site())) + "\n");
    return;
  }
  if (request.placing.network == knob::kAuto) {
    probe_all(session, work, request, flags);
    return;
  }
  const InterruptGuard guard(*session.cancellation);
  const ProbeOutcome outcome = probe_cluster(work.context(), request);
  work.clear_progress();
  if (session.json) {
    session.print_json(to_json(outcome));
  } else {
    session.print(probe_report(outcome) + "\n");
    print_next(session, flags, outcome.cluster.name);
  }
  if (const auto why = not_compared(outcome))
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("--compare: {} (the probe itself is complete and kept as fit {})", *why, outcome.fit));
}

}  // namespace

void add_probe_command(CLI::App& tune, Session& session) {
  CLI::App* command =
      tune.add_subcommand("probe", "Measure a cluster's links and roads, fit them, and keep all of it");
  command->footer(
      "Examples:\n"
      "  tune probe                                        this machine with 4 ranks, as cluster \"local\"\n"
      "  tune probe --hosts hosts.txt --cluster lab        an Open MPI hostfile (lines such as: node1 "
      "slots=4)\n"
      "  tune probe -H 'tux[0-3]:2' --cluster tux --budget 30s -e 256M\n"
      "  tune probe --hosts hosts.txt --for bert_large     refine what decides how bert_large travels\n"
      "  tune probe --hosts hosts.txt --transport auto     over each transport that works on all hosts;\n"
      "                                                    a plan says which it wants\n"
      "  tune probe --hosts hosts.txt --device cuda --cluster gpus   messages in GPUs, NCCL among the roads\n"
      "Ctrl-C keeps what was measured; the same command goes on from there.");
  auto flags = std::make_shared<ProbeFlags>();
  flags->placing = add_placing_flags(*command, session, knob::kProbedOver, knob::kAuto);
  add_dry_run_flag(*command, *flags->placing);
  add_common_flags(*command, session, {"cluster"});
  probes::ProbeOptions& options = flags->options;
  add_knob(*command, knob::kFirst, options.first);
  add_knob(*command, knob::kLast, options.last);
  add_knob(*command, knob::kFactor, options.factor);
  add_knob(*command, knob::kIterations, options.iterations);
  add_knob(*command, knob::kMostIterations, options.max_iterations);
  add_knob(*command, knob::kProbeWarmup, options.warmup);
  add_knob(*command, knob::kWidth, options.width);
  add_knob(*command, knob::kProbeBudget, options.budget);
  add_knob(*command, knob::kTraffic, options.traffic);
  add_knob(*command, knob::kProbedFor, flags->models)->expected(1, 32)->take_all();
  add_knob(*command, knob::kProbedServers, flags->servers)->delimiter(',');
  add_knob(*command, knob::kProbeSeed, options.seed);
  add_knob(*command, knob::kFresh, flags->fresh);
  add_knob(*command, knob::kCompare, flags->compare);
  add_knob(*command, knob::kSharedHosts, flags->shared_hosts);
  add_knob(*command, knob::kProbeDevice, options.device);
  add_knob(*command, knob::kProbeChunk, options.chunk);
  add_knob(*command, knob::kSmShare, options.sm_share);
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_probe(session, *flags); }; });
}

}  // namespace commtune::api
