#include "api/actions/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "api/actions/pytorch_profile.h"
#include "api/import/profile_from_trace.h"
#include "api/import/trace_reader.h"
#include "api/question/models.h"
#include "executor/base/new_file.h"
#include "perfmodel/base/error.h"
#include "probes/compute/architecture.h"
#include "probes/compute/cuda/gpu_profiler.h"
#include "probes/compute/cuda/library_folders.h"
#include "probes/compute/profiler.h"
#include "probes/host/host_facts.h"

namespace commtune::api {
namespace {

using SteadyClock = std::chrono::steady_clock;

compute::Architecture architecture_named(const std::string& model) {
  if (auto architecture = compute::architecture_of(model)) return std::move(*architecture);
  throw Error(ErrorCode::kNotFound,
              fmt::format("model \"{}\": its layers' shapes are not known; known are {}", model,
                          fmt::join(compute::architecture_names(), ", ")));
}

std::string processor() {
  const auto facts = probes::host_facts();
  const auto cpu = facts.find("cpu");
  return cpu == facts.end() ? "unknown processor" : cpu->second;
}

/// Tells the context how far it is; false once it is cancelled.
template <typename Progress>
auto told_to(Context& context) {
  return [&context](const Progress& at) {
    context.progress({at.what, at.fraction, at.left});
    return !context.cancellation.requested();
  };
}

/// Of a shipped model's layers, which oneDNN computes.
Profile profile_on_processor(Context& context, const ProfileRequest& request,
                             const compute::Architecture& architecture) {
  compute::ProfilerOptions options;
  options.batch = request.batch;
  options.threads = request.threads;
  options.budget = request.budget;
  options.width = request.width;
  options.device = processor();
  return compute::profile_layers(architecture, find_profile(context.store, request.model), options,
                                 told_to<compute::ProfilerProgress>(context));
}

/// The same by cuDNN and cuBLAS.
Profile profile_on_device(Context& context, const ProfileRequest& request,
                          const compute::Architecture& architecture) {
  const auto precision = compute::precision_named(request.precision);
  if (!precision) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("precision \"{}\": must be fp32, tf32 or bf16", request.precision));
  }
  compute::GpuProfilerOptions options;
  options.model = {request.gpu, request.batch, *precision,
                   compute::python_library_folders(request.search_path)};
  options.budget = request.budget;
  options.width = request.width;
  return compute::profile_on_gpu(architecture, find_profile(context.store, request.model), options,
                                 told_to<compute::GpuProfilerProgress>(context));
}

Profile profile_of_shapes(Context& context, const ProfileRequest& request) {
  const compute::Architecture architecture = architecture_named(request.model);
  if (request.device == "cpu") return profile_on_processor(context, request, architecture);
  if (request.device == "cuda") return profile_on_device(context, request, architecture);
  throw Error(ErrorCode::kBadInput,
              fmt::format("--device {}: must be cpu or cuda, or meta with --pytorch", request.device));
}

Profile profile_of_trace(Context& context, const ProfileRequest& request) {
  TraceImport options;
  options.batch = request.batch;
  if (!request.sizes.empty()) options.model = find_profile(context.store, request.sizes);
  return profile_from_trace(read_trace(read_text_file(request.trace), request.trace), options, request.trace);
}

Profile profile_as_asked(Context& context, const ProfileRequest& request) {
  if (!request.trace.empty()) return profile_of_trace(context, request);
  if (!request.pytorch.empty()) return profile_of_program(context, request);
  return profile_of_shapes(context, request);
}

}  // namespace

ProfileOutcome profile_model(Context& context, const ProfileRequest& request) {
  const auto begin = SteadyClock::now();
  ProfileOutcome outcome;
  outcome.profile = profile_as_asked(context, request);
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
