#include "probes/sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/road_json.h"

namespace commtune::probes {

namespace {

// What a stored sample may say: beyond these it is no measurement but a broken file.
constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 62;  // bytes
constexpr double kLongest = 1e9;                                // seconds
constexpr double kLeastFactor = 1e-6;                           // ratio, on costs
constexpr std::int64_t kMostRanks = 1'000'000;                  // ranks
constexpr std::size_t kMostRepetitions = 1'000'000;             // of one size

constexpr std::pair<std::string_view, Subject> kSubjects[] = {
    {"message", Subject::kMessage},     {"exchange", Subject::kExchange},
    {"operation", Subject::kOperation}, {"sum", Subject::kSum},
    {"copy", Subject::kCopy},           {"step", Subject::kStep},
    {"cast", Subject::kCast},           {"cast-sum", Subject::kCastSum},
    {"jitter", Subject::kJitter},       {"backlog", Subject::kHeadOfLine},
    {"plan", Subject::kPlan},           {"traffic", Subject::kTraffic},
    {"launch", Subject::kLaunch},       {"upload", Subject::kUpload},
    {"download", Subject::kDownload}};

constexpr std::array kOperations{Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
                                 Operation::kPushPull,  Operation::kPush,          Operation::kPull};

Operation read_operation(const JsonPlace& place) {
  const std::string given = place.name();
  std::string known;
  for (const Operation operation : kOperations) {
    if (to_string(operation) == given) {
      return operation;
    }
    known += (known.empty() ? "\"" : ", \"") + to_string(operation) + "\"";
  }
  place.fail("one of " + known);
}

double ratio(const JsonPlace& place, double least) { return place.number(least, 1 / kLeastFactor); }

CostFactor cost_factor_from_json(const JsonPlace& place) {
  const JsonPlace opposed = place["opposed"];
  return {
      ratio(place["startup_factor"], kLeastFactor),
      ratio(place["rate_factor"], kLeastFactor),
      {ratio(place["startup_deviation_ratio"], 0), ratio(place["rate_deviation_ratio"], 0), opposed.truth()}};
}

bool between_two_ranks(Subject subject) {
  return subject == Subject::kMessage || subject == Subject::kExchange;
}

bool on_road(Subject subject) { return of_operation(subject) || subject == Subject::kPlan; }

bool of_casts(Subject subject) { return subject == Subject::kCast || subject == Subject::kCastSum; }

bool on_one_rank(Subject subject) {
  return subject == Subject::kSum || subject == Subject::kCopy || subject == Subject::kLaunch ||
         subject == Subject::kUpload || subject == Subject::kDownload || of_casts(subject);
}

int read_rank(const JsonPlace& parent, std::string_view key) {
  const JsonPlace place = parent[key];
  return static_cast<int>(place.integer(0, static_cast<std::uint64_t>(kMostRanks)));
}

/// Of operations on the road `library` alone.
NcclTuning read_nccl(const JsonPlace& place, const Quantity& quantity) {
  if (quantity.subject != Subject::kOperation || quantity.road != Road{AllReduce{Collective::kLibrary}})
    place.fail_because("only an operation of a library's has a tuning");
  const auto tuning = nccl_tuning_named(place.name());
  if (!tuning) place.fail(nccl_tuning_rule());
  return *tuning;
}

Quantity read_quantity(const JsonPlace& place) {
  Quantity quantity;
  const JsonPlace subject = place["subject"];
  quantity.subject = read_enum(subject, kSubjects);
  const JsonPlace in_flight = place["in_flight"];
  quantity.in_flight = static_cast<int>(in_flight.integer(0, static_cast<std::uint64_t>(kMostRanks)));
  if (on_road(quantity.subject)) {
    const JsonPlace road = place["road"];
    quantity.road = road_from_json(road);
    if (of_operation(quantity.subject)) {
      const JsonPlace operation = place["operation"];
      quantity.operation = read_operation(operation);
    }
    quantity.workers = read_rank(place, "workers");
  }
  if (const auto nccl = place.find("nccl")) quantity.nccl = read_nccl(*nccl, quantity);
  if (between_two_ranks(quantity.subject)) {
    quantity.source = read_rank(place, "source");
    quantity.destination = read_rank(place, "destination");
  }
  if (on_one_rank(quantity.subject)) {
    quantity.source = read_rank(place, "source");
  }
  if (quantity.subject == Subject::kTraffic) {
    if (const auto computing = place.find("computing")) quantity.computing = computing->truth();
  }
  if (of_casts(quantity.subject)) {
    const JsonPlace wire = place["wire"];
    quantity.wire = wire_format_named(wire.name());
  }
  return quantity;
}

}  // namespace

nlohmann::json to_json(const CostFactor& factor) {
  return {{"startup_factor", factor.startup},
          {"rate_factor", factor.rate},
          {"startup_deviation_ratio", factor.deviation.startup},
          {"rate_deviation_ratio", factor.deviation.rate},
          {"opposed", factor.deviation.opposed}};
}

nlohmann::json to_json(const PlanCosts& costs) {
  const auto& [startup, rate, deviation] = costs.streamed;
  nlohmann::json written{{"plan", costs.plan},
                         {"predicted_seconds", costs.predicted.count()},
                         {"cost_factor", startup == rate ? rate : std::sqrt(startup * rate)},
                         {"cost_deviation_ratio", deviation.largest()}};
  if (startup != rate || deviation.startup != deviation.rate || deviation.opposed)
    written.update(to_json(costs.streamed));
  if (costs.alone != costs.streamed) written["alone"] = to_json(costs.alone);
  return written;
}

PlanCosts plan_costs_from_json(const JsonPlace& place) {
  const JsonPlace plan = place["plan"], predicted = place["predicted_seconds"];
  PlanCosts costs;
  costs.plan = plan.name();
  costs.predicted = Seconds{predicted.number(0, kLongest)};
  if (place.find("startup_factor")) {
    costs.streamed = cost_factor_from_json(place);
  } else {
    const double deviation = ratio(place["cost_deviation_ratio"], 0);
    costs.streamed.startup = costs.streamed.rate = ratio(place["cost_factor"], kLeastFactor);
    costs.streamed.deviation = {deviation, deviation};
  }
  const std::optional<JsonPlace> alone = place.find("alone");
  costs.alone = alone ? cost_factor_from_json(*alone) : costs.streamed;
  return costs;
}

bool ProbeSample::operator==(const ProbeSample& other) const {
  return quantity == other.quantity && sample.size == other.sample.size && sample.time == other.sample.time &&
         costs == other.costs && sample.half_width == other.sample.half_width &&
         sample.repetitions == other.sample.repetitions && raw_seconds == other.raw_seconds;
}

std::string to_string(Subject subject) { return enum_name(subject, kSubjects); }

bool of_operation(Subject subject) {
  return subject == Subject::kOperation || subject == Subject::kHeadOfLine || subject == Subject::kTraffic;
}

bool is_back_to_back(const Quantity& quantity) {
  const bool of_ranks = quantity.subject == Subject::kMessage || quantity.subject == Subject::kOperation;
  return on_one_rank(quantity.subject) || (of_ranks && quantity.in_flight == 1);
}

std::string describe(const Quantity& quantity) {
  const std::string flight = ", " + std::to_string(quantity.in_flight) + " in flight";
  switch (quantity.subject) {
    case Subject::kMessage:
      return "message " + std::to_string(quantity.source) + " -> " + std::to_string(quantity.destination) +
             flight;
    case Subject::kExchange:
      return "exchange " + std::to_string(quantity.source) + " <-> " + std::to_string(quantity.destination) +
             flight;
    case Subject::kOperation:
      return commtune::to_string(quantity.operation) + ", " + commtune::describe(quantity.road) +
             (quantity.nccl.is_own_choice() ? "" : " (NCCL, " + commtune::to_string(quantity.nccl) + ")") +
             ", " + std::to_string(quantity.workers) + " workers" + flight;
    case Subject::kHeadOfLine:
      return "wait behind " + commtune::describe(quantity.road) + ", " + std::to_string(quantity.workers) +
             " workers" + flight;
    case Subject::kTraffic:
      return "stream of " + commtune::describe(quantity.road) + ", " + std::to_string(quantity.workers) +
             " workers" + flight + (quantity.computing ? ", beside compute steps" : "");
    case Subject::kPlan:
      return "plan, " + commtune::describe(quantity.road) + ", " + std::to_string(quantity.workers) +
             " workers";
    case Subject::kStep:
      return quantity.in_flight > 0 ? "compute step while bytes move" : "compute step";
    case Subject::kCast:
    case Subject::kCastSum:
      return to_string(quantity.subject) + ", " + commtune::to_string(quantity.wire);
    case Subject::kSum:
    case Subject::kCopy:
    case Subject::kJitter:
    case Subject::kLaunch:
    case Subject::kUpload:
    case Subject::kDownload:
      break;
  }
  return to_string(quantity.subject);
}

nlohmann::json to_json(const ProbeSample& sample) {
  const Quantity& quantity = sample.quantity;
  nlohmann::json json{{"subject", to_string(quantity.subject)},
                      {"in_flight", quantity.in_flight},
                      {"size_bytes", sample.sample.size.count},
                      {"seconds", sample.sample.time.count()},
                      {"half_width_seconds", sample.sample.half_width.count()},
                      {"repetitions", sample.sample.repetitions}};
  if (on_road(quantity.subject)) {
    json["road"] = commtune::to_json(quantity.road);
    json["workers"] = quantity.workers;
  }
  if (of_operation(quantity.subject)) json["operation"] = commtune::to_string(quantity.operation);
  if (!quantity.nccl.is_own_choice()) json["nccl"] = commtune::to_string(quantity.nccl);
  if (quantity.subject == Subject::kPlan) {
    json.update(to_json(sample.costs));
  }
  if (between_two_ranks(quantity.subject) || on_one_rank(quantity.subject)) {
    json["source"] = quantity.source;
  }
  if (quantity.computing) json["computing"] = true;
  if (of_casts(quantity.subject)) json["wire"] = commtune::to_string(quantity.wire);
  if (between_two_ranks(quantity.subject)) {
    json["destination"] = quantity.destination;
  }
  if (!sample.raw_seconds.empty()) {
    json["raw_seconds"] = sample.raw_seconds;
  }
  return json;
}

ProbeSample probe_sample_from_json(const nlohmann::json& json) {
  const JsonPlace place(json);
  place.expect_keys({"subject",
                     "in_flight",
                     "size_bytes",
                     "seconds",
                     "half_width_seconds",
                     "repetitions",
                     "road",
                     "operation",
                     "workers",
                     "source",
                     "destination",
                     "wire",
                     "nccl",
                     "computing",
                     "raw_seconds",
                     "plan",
                     "predicted_seconds",
                     "cost_factor",
                     "cost_deviation_ratio",
                     "startup_factor",
                     "rate_factor",
                     "startup_deviation_ratio",
                     "rate_deviation_ratio",
                     "opposed",
                     "alone"});
  ProbeSample result;
  result.quantity = read_quantity(place);
  if (result.quantity.subject == Subject::kPlan) result.costs = plan_costs_from_json(place);
  const JsonPlace size = place["size_bytes"];
  result.sample.size = Bytes{size.integer(0, kLargestSize)};
  const JsonPlace seconds = place["seconds"];
  result.sample.time = Seconds{seconds.number(0, kLongest)};
  const JsonPlace half_width = place["half_width_seconds"];
  result.sample.half_width = Seconds{half_width.number(0, kLongest)};
  const JsonPlace repetitions = place["repetitions"];
  result.sample.repetitions = static_cast<int>(repetitions.integer(1, kMostRepetitions));
  if (const auto raw = place.find("raw_seconds")) {
    const std::size_t count = raw->size(0, kMostRepetitions);
    for (std::size_t i = 0; i < count; ++i) {
      const JsonPlace value = (*raw)[i];
      result.raw_seconds.push_back(value.number(0, kLongest));
    }
  }
  return result;
}

}  // namespace commtune::probes
