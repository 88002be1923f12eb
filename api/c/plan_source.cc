#include "api/c/plan_source.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "tuner/methods/buckets.h"
#include "tuner/planning.h"

namespace commtune::api {
namespace {

/// Layers whose times nobody knows: one that has all tensors.
Profile untimed(const TensorLayout& layout) {
  Profile profile;
  profile.model = "unnamed";
  profile.type = layout.type;
  Layer layer;
  layer.name = "all";
  layer.tensors = layout.tensors;
  profile.layers.push_back(std::move(layer));
  return profile;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw Error(ErrorCode::kNotFound, fmt::format("plan {}: {}", path, std::strerror(errno)));
  return text;
}

/// A plan, or what the service answers for one (/v1/plans/{id}), which has it inside.
Plan plan_in(const nlohmann::json& document) {
  const bool answer = document.is_object() && !document.contains("format") && document.contains("plan");
  return plan_from_json(answer ? document["plan"] : document);
}

}  // namespace

Plan bucket_plan(const TensorLayout& layout, int workers, const BucketOptions& options) {
  if (options.servers < 0 || options.servers > workers) {
    throw Error(ErrorCode::kBadInput, fmt::format("servers = {}: must be 0 to the number of workers, {}",
                                                  options.servers, workers));
  }
  tuner::RoadOption option;
  if (options.servers > 0) option.road = ParameterServer{.servers = options.servers};
  const tuner::Planning job(untimed(layout), workers, {option});
  Plan plan = tuner::buckets(job, option, options.first, options.others);
  plan.method = "buckets";
  plan.barrier = options.barrier;
  plan.profile.clear();
  return plan;
}

Plan plan_from(std::string_view source, const TensorLayout& layout, int workers) {
  if (source == "buckets") return bucket_plan(layout, workers);
  if (source.starts_with('{')) return plan_in(parse_json(source, "plan"));
  const std::string path(source);
  const nlohmann::json document = parse_json(text_of(path), path);
  try {
    return plan_in(document);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace commtune::api
