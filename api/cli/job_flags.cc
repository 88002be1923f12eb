#include "api/cli/job_flags.h"

#include "api/cli/knob_flags.h"
#include "api/cli/question_flags.h"
#include "api/question/fitted.h"
#include "api/question/models.h"

namespace commtune::api {

Question JobFlags::question(Work& work) const {
  options.check();
  Question question;
  question.profile = find_profile(work.store(), model);
  if (scaled()) question.profile = commtune::scaled(*question.profile, scale_bytes, scale_time);
  question.cluster.name = work.settings().cluster;
  question.cluster.transport = transport;
  if (!cluster_file.empty()) question.cluster.given = read_cluster_file(cluster_file);
  question.allocation = allocation;
  question.allocation.workers = options.workers;
  question.allocation.limits = options.limits;
  question.overrides = overrides;
  question.draws = options.draws;
  question.seed = options.seed;
  question.thorough = options.thorough;
  if (!barrier.empty()) question.barrier = barrier_named(barrier);
  question.keep = Keep::kAll;
  return question;
}

void add_job_flags(CLI::App& command, JobFlags& flags) {
  command
      .add_option(
          "MODEL", flags.model,
          "a shipped profile (`tune show profiles`), a profile file, or a digest: of a profile, or of a "
          "layout (its newest profile)")
      ->required();
  command
      .add_option(
          "--cluster-file", flags.cluster_file,
          "plan for the cluster in this file, such as `tune show clusters NAME --json` prints, in place "
          "of --cluster: to try other hosts, factors or links")
      ->type_name("FILE");
  add_knob(command, knob::kTransport, flags.transport);
  add_knob(command, knob::kDedicatedServers, flags.options.limits.dedicated_servers);
  add_knob(command, knob::kHashed, flags.options.limits.hashed);
  command.add_option("--scale-bytes", flags.scale_bytes, "multiply every tensor's size by this")
      ->capture_default_str();
  command.add_option("--scale-time", flags.scale_time, "multiply every layer's time by this")
      ->capture_default_str();
  add_knob(command, knob::kDraws, flags.options.draws);
  add_knob(command, knob::kSeed, flags.options.seed);
  add_knob(command, knob::kThorough, flags.options.thorough);
  add_knob(command, knob::kBarrier, flags.barrier)->check(CLI::IsMember({"full", "per-layer"}));
  add_override_flags(command, flags.overrides);
}

}  // namespace commtune::api
