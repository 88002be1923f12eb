#include "api/actions/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "api/actions/pytorch_profile.h"
#include "api/question/models.h"
#include "executor/base/new_file.h"
#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "probes/compute/profiler.h"
#include "probes/host/host_facts.h"

namespace commtune::api {
namespace {

using SteadyClock = std::chrono::steady_clock;

compute::Architecture architecture_named(const std::string& model) {
  if (auto architecture = compute::architecture_of(model)) return std::move(*architecture);
  throw Error(ErrorCode::kNotFound,
              fmt::format("model \"{}\": its layers' shapes are not known; known are {}", model,
                          fmt::join(shipped_profile_names(), ", ")));
}

std::string processor() {
  const auto facts = probes::host_facts();
  const auto cpu = facts.find("cpu");
  return cpu == facts.end() ? "unknown processor" : cpu->second;
}

/// Of a shipped model's layers, which oneDNN computes.
Profile profile_of_shapes(Context& context, const ProfileRequest& request) {
  if (request.device != "cpu") {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("--device {}: only \"cpu\" can be timed here", request.device));
  }
  const compute::Architecture architecture = architecture_named(request.model);
  compute::ProfilerOptions options;
  options.batch = request.batch;
  options.threads = request.threads;
  options.budget = request.budget;
  options.width = request.width;
  options.device = processor();
  const auto progress = [&](const compute::ProfilerProgress& at) {
    context.progress({at.what, at.fraction, at.left});
    return !context.cancellation.requested();
  };
  return compute::profile_layers(architecture, find_profile(context.store, request.model), options, progress);
}

}  // namespace

ProfileOutcome profile_model(Context& context, const ProfileRequest& request) {
  const auto begin = SteadyClock::now();
  ProfileOutcome outcome;
  outcome.profile =
      request.pytorch.empty() ? profile_of_shapes(context, request) : profile_of_program(context, request);
  outcome.elapsed = SteadyClock::now() - begin;
  outcome.digest = digest(outcome.profile);
  outcome.row = context.store.put_profile(outcome.profile);
  if (!request.out.empty()) write_file(request.out, commtune::to_json(outcome.profile).dump(2) + "\n");
  return outcome;
}

nlohmann::json to_json(const ProfileOutcome& outcome) {
  return {{"id", outcome.row},
          {"digest", outcome.digest},
          {"elapsed_seconds", outcome.elapsed.count()},
          {"profile", commtune::to_json(outcome.profile)}};
}

}  // namespace commtune::api
