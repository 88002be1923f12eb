#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/actions/probe.h"
#include "api/cli/commands.h"
#include "api/launch/srun.h"
#include "api/output/report.h"
#include "perfmodel/error.h"
#include "perfmodel/units.h"

namespace commtune::api {
namespace {

struct ProbeFlags {
  std::shared_ptr<PlacingFlags> placing;
  std::string first, last, budget, traffic;
  probes::ProbeOptions options;
  std::vector<int> servers;
  bool fresh = false;
  bool shared_hosts = false;
  bool compare = false;
};

probes::ProbeOptions options_of(const ProbeFlags& flags) {
  probes::ProbeOptions options = flags.options;
  if (!flags.first.empty()) options.first = parse_flag("-b", flags.first, parse_size);
  if (!flags.last.empty()) options.last = parse_flag("-e", flags.last, parse_size);
  if (!flags.traffic.empty()) options.traffic = parse_flag("--traffic", flags.traffic, parse_size);
  if (!flags.budget.empty()) options.budget = parse_flag("--budget", flags.budget, parse_duration);
  for (const int servers : flags.servers) options.servers.push_back(ParameterServer{servers, {}, {}});
  options.exclusive = !flags.shared_hosts;
  return options;
}

void run_probe(const Session& session, const ProbeFlags& flags) {
  Work work(session);
  ProbeRequest request;
  request.cluster = work.settings().cluster;
  request.placing = flags.placing->placing(work.settings());
  request.options = options_of(flags);
  request.fresh = flags.fresh;
  request.compare = flags.compare;
  if (flags.placing->dry_run) {
    const LaunchOptions launch = launch_options(work.context(), request.placing, 0);
    session.print(quoted(launch_command(launch.mpirun, inspect_site())) + "\n");
    return;
  }
  const InterruptGuard guard(*session.cancellation);
  const ProbeOutcome outcome = probe_cluster(work.context(), request);
  work.clear_progress();
  if (session.json) {
    session.print_json(to_json(outcome));
  } else {
    session.print(probe_report(outcome));
    session.print(fmt::format("\nnow: tune MODEL --cluster {}\n", outcome.cluster.name));
  }
  if (const auto why = not_compared(outcome))
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("--compare: {} (the probe itself is complete and kept as fit {})", *why, outcome.fit));
}

}  // namespace

void add_probe_command(CLI::App& tune, Session& session) {
  CLI::App* command =
      tune.add_subcommand("probe", "Measure a cluster's links and roads, fit them, keep all of it");
  command->footer(
      "Examples:\n"
      "  tune probe                                        this machine with 4 ranks, as cluster \"local\"\n"
      "  tune probe --hosts hosts.txt --cluster lab        an Open MPI hostfile (lines such as: node1 "
      "slots=4)\n"
      "  tune probe -H 'tux[0-3]:2' --cluster tux --budget 30s -e 256M\n"
      "Ctrl-C keeps what was measured; the same command goes on from there.");
  auto flags = std::make_shared<ProbeFlags>();
  flags->placing = add_placing_flags(*command, session);
  add_dry_run_flag(*command, *flags->placing);
  add_common_flags(*command, session, {"cluster"});
  command->add_option("-b,--first", flags->first, "smallest message (4)")->type_name("SIZE");
  command->add_option("-e,--last", flags->last, "largest message that a plan may send (64M)")
      ->type_name("SIZE");
  command->add_option("-f,--factor", flags->options.factor, "ratio of neighbouring sizes")
      ->capture_default_str();
  command->add_option("-n,--iterations", flags->options.iterations, "timed repetitions of a size, at least")
      ->capture_default_str();
  command->add_option("--max-iterations", flags->options.max_iterations, "at most")->capture_default_str();
  command->add_option("-w,--warmup", flags->options.warmup, "repetitions that are not timed")
      ->capture_default_str();
  command
      ->add_option("--width", flags->options.width,
                   "a size is done when its median's 95 % interval is this narrow")
      ->capture_default_str();
  command->add_option("--budget", flags->budget, "wall time; default: grows with the hosts, at most 60s")
      ->type_name("TIME");
  command->add_option("--traffic", flags->traffic, "most bytes that a rank may send")->type_name("SIZE");
  command
      ->add_option("--servers", flags->servers,
                   "numbers of colocated servers to probe (default: 1, 2 and all)")
      ->delimiter(',');
  command->add_option("--seed", flags->options.seed, "of choices made at random")->capture_default_str();
  command->add_flag("--fresh", flags->fresh, "start over instead of going on from an interrupted probe");
  command->add_flag("--compare", flags->compare,
                    "run iperf3 between the first two hosts before, with RDMA devices perftest's ib_write_bw "
                    "too, and print "
                    "what they say beside ours (status 9 when none of them can)");
  command->add_flag("--shared-hosts", flags->shared_hosts,
                    "do not refuse when another probe runs on these hosts");
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_probe(session, *flags); }; });
}

}  // namespace commtune::api
