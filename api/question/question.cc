#include "api/question/question.h"

#include <fmt/format.h>

#include "perfmodel/error.h"
#include "perfmodel/units.h"

namespace commtune::api {
namespace {

constexpr std::pair<std::string_view, Keep> kKeeps[] = {
    {"none", Keep::kNone}, {"chosen", Keep::kChosen}, {"all", Keep::kAll}};
constexpr std::uint64_t kMostWorkers = 4096, kMostDevices = 1024, kMostBatch = 1U << 20U;
constexpr std::uint64_t kMostDraws = 1024, kMostSeed = 0xFFFF'FFFFU;
constexpr std::size_t kMostCandidates = 64;
constexpr std::uint64_t kMostVerified = 32;
constexpr double kLeastBudget = 1, kMostBudget = 86'400;  // seconds
constexpr double kSmallestScale = 1e-3, kLargestScale = 1e3;

int read_int(const JsonPlace& object, std::string_view key, std::uint64_t least, std::uint64_t most,
             int otherwise) {
  const auto place = object.find(key);
  return place ? static_cast<int>(place->integer(least, most)) : otherwise;
}

double read_scale(const JsonPlace& object, std::string_view key) {
  const auto place = object.find(key);
  return place ? place->number(kSmallestScale, kLargestScale) : 1.0;
}

bool read_flag(const JsonPlace& object, std::string_view key) {
  const auto place = object.find(key);
  if (!place) return false;
  const nlohmann::json& value = object.object().at(std::string(key));
  if (!value.is_boolean()) place->fail("true or false");
  return value.get<bool>();
}

/// "5s" as on the command line.
Seconds read_time(const JsonPlace& place) {
  Seconds time{};
  try {
    time = parse_duration(place.name());
  } catch (const Error& error) {
    place.fail_because(error.what());
  }
  if (time.count() < kLeastBudget || time.count() > kMostBudget)
    place.fail_because(fmt::format("{}: must be from {} s to {} s", place.name(), kLeastBudget, kMostBudget));
  return time;
}

Seats read_seats(const JsonPlace& place) {
  Seats seats;
  seats.workers = read_int(place, "workers", 1, kMostWorkers, 0);
  if (const auto nodes = place.find("nodes")) seats.nodes = nodes->text();
  seats.node_count = read_int(place, "node_count", 1, kMostWorkers, 0);
  seats.devices_per_node = read_int(place, "devices_per_node", 1, kMostDevices, 0);
  seats.limits.colocated_servers = read_int(place, "servers", 0, kMostWorkers, 0);
  seats.limits.dedicated_servers = read_int(place, "dedicated_servers", 0, kMostWorkers, 0);
  seats.limits.hashed = read_flag(place, "hashed");
  return seats;
}

Candidate read_candidate(const JsonPlace& place) {
  place.expect_keys({"name", "cluster", "workers", "nodes", "node_count", "devices_per_node", "servers",
                     "dedicated_servers", "hashed"});
  Candidate candidate;
  const JsonPlace name = place["name"];
  candidate.name = name.name();
  if (const auto cluster = place.find("cluster")) candidate.cluster = cluster->name();
  candidate.seats = read_seats(place);
  return candidate;
}

void read_recommendation(const JsonPlace& document, Question& question) {
  const auto place = document.find("recommend_workers");
  if (!place) return;
  place->expect_keys({"most", "least_efficiency"});
  question.most_workers = read_int(*place, "most", 1, kMostWorkers, 64);
  if (const auto efficiency = place->find("least_efficiency"))
    question.least_efficiency = efficiency->number(0.01, 1);
}

/// A number of plans, or an object with the limits.
void read_verify(const JsonPlace& document, Question& question) {
  const auto place = document.find("verify");
  if (!place) return;
  tuner::VerifyLimits limits;
  if (document.object().at("verify").is_number()) {
    limits.plans = static_cast<int>(place->integer(2, kMostVerified));
  } else {
    place->expect_keys({"plans", "budget_seconds"});
    limits.plans = read_int(*place, "plans", 2, kMostVerified, limits.plans);
    if (const auto budget = place->find("budget_seconds"))
      limits.budget = Seconds{budget->number(kLeastBudget, kMostBudget)};
  }
  question.verify = limits;
}

/// A name, or a whole cluster.
ClusterChoice read_cluster(const JsonPlace& document) {
  const JsonPlace place = document["cluster"];
  const nlohmann::json& value = document.object().at("cluster");
  if (!value.is_object()) return {place.name(), {}};
  Cluster given = cluster_from_json(value);
  std::string name = given.name;
  return {std::move(name), std::move(given)};
}

}  // namespace

bool Question::is_changed() const {
  return overrides.any() || !seats.nodes.empty() || seats.node_count > 0 || seats.devices_per_node > 0;
}

void check_runs(const Question& question) {
  const Seats& seats = question.seats;
  const std::pair<bool, std::string_view> rules[] = {
      {question.overrides.any(), "overrides: no plan can be run on a what-if, since no cluster is so"},
      {!seats.nodes.empty(), "nodes: runs choose no hosts: they are on the cluster's first ranks"},
      {seats.node_count > 0, "node_count: runs are on the cluster's own hosts"},
      {seats.devices_per_node > 0, "devices_per_node: runs are on the cluster's own slots"},
      {question.most_workers > 0, "recommend_workers: cannot be measured by runs; ask for it on its own"},
      {!question.candidates.empty(), "candidates: cannot be run; ask for each on its own"},
      {question.keep == Keep::kNone, "keep: plans that are run are stored, all of the ranking"}};
  for (const auto& [broken, rule] : rules)
    if (broken) throw Error(ErrorCode::kBadInput, std::string(rule));
}

bool Overrides::any() const { return *this != Overrides{}; }

Overrides overrides_from_json(const JsonPlace& place) {
  place.expect_keys({"bandwidth_scale", "latency_scale", "device_speed_scale", "gradient_scale", "batch"});
  Overrides overrides;
  overrides.bandwidth_scale = read_scale(place, "bandwidth_scale");
  overrides.latency_scale = read_scale(place, "latency_scale");
  overrides.device_speed_scale = read_scale(place, "device_speed_scale");
  overrides.gradient_scale = read_scale(place, "gradient_scale");
  overrides.batch = read_int(place, "batch", 1, kMostBatch, 0);
  return overrides;
}

nlohmann::json to_json(const Overrides& overrides) {
  if (!overrides.any()) return nullptr;
  nlohmann::json out{{"bandwidth_scale", overrides.bandwidth_scale},
                     {"latency_scale", overrides.latency_scale},
                     {"device_speed_scale", overrides.device_speed_scale},
                     {"gradient_scale", overrides.gradient_scale}};
  if (overrides.batch > 0) out["batch"] = overrides.batch;
  return out;
}

std::string to_string(Keep keep) { return enum_name(keep, kKeeps); }

Keep keep_named(const std::string& name) {
  const nlohmann::json value(name);
  return read_enum(JsonPlace(value), kKeeps);
}

Question question_from_json(const nlohmann::json& body) {
  const JsonPlace document(body);
  document.expect_keys({"model", "cluster", "workers", "nodes", "node_count", "devices_per_node", "servers",
                        "dedicated_servers", "hashed", "draws", "seed", "keep", "strict", "overrides",
                        "recommend_workers", "candidates", "plan_time", "check", "verify"});
  Question question;
  const JsonPlace model = document["model"];
  if (body.at("model").is_object()) {
    question.profile = profile_from_json(body.at("model"));
  } else {
    question.model = model.name();
  }
  question.cluster = read_cluster(document);
  question.seats = read_seats(document);
  question.draws = read_int(document, "draws", 0, kMostDraws, question.draws);
  if (const auto seed = document.find("seed")) question.seed = seed->integer(0, kMostSeed);
  if (const auto keep = document.find("keep")) {
    question.keep = read_enum(*keep, kKeeps);
  }
  question.strict = read_flag(document, "strict");
  if (const auto overrides = document.find("overrides")) question.overrides = overrides_from_json(*overrides);
  read_recommendation(document, question);
  if (const auto candidates = document.find("candidates")) {
    for (std::size_t i = 0, n = candidates->size(1, kMostCandidates); i < n; ++i) {
      const JsonPlace place = (*candidates)[i];
      question.candidates.push_back(read_candidate(place));
    }
  }
  if (const auto time = document.find("plan_time")) question.plan_time = read_time(*time);
  if (const auto check = document.find("check")) question.check = read_time(*check);
  read_verify(document, question);
  if (question.asks_for_runs()) check_runs(question);
  return question;
}

}  // namespace commtune::api
