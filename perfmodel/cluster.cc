#include "perfmodel/cluster.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "perfmodel/error.h"
#include "perfmodel/json_reader.h"
#include "perfmodel/road_json.h"

namespace commtune {

namespace {

// Bounds that keep sums of slots in an int and costs of any message finite.
constexpr std::size_t kMostHosts = 100'000;
constexpr std::uint64_t kMostSlots = 10'000;
constexpr std::size_t kMostOperations = 100'000;
constexpr std::size_t kMostFacts = 10'000;
constexpr std::size_t kMostPiecesOfCurve = 64;
constexpr std::uint64_t kMostWorkers = 1'000'000;
constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostSamples = 1'000'000'000;
constexpr double kLargestAlpha = 1e6;   // seconds
constexpr double kLargestBeta = 1e3;    // seconds per byte
constexpr double kLargestScalar = 1e6;  // each in its own unit
constexpr double kLargestFactor = 1e4;  // of a host's pace, and one over it the smallest
constexpr double kLargestDeviation = 10;
constexpr double kLargest = std::numeric_limits<double>::max();

constexpr std::string_view kClusterFormat = "commtune/cluster/1";
constexpr std::pair<std::string_view, LinkClass> kLinkClasses[] = {{"intra-host", LinkClass::kIntraHost},
                                                                   {"inter-host", LinkClass::kInterHost}};
constexpr std::pair<std::string_view, Operation> kOperations[] = {
    {"all-reduce", Operation::kAllReduce},
    {"reduce-scatter", Operation::kReduceScatter},
    {"all-gather", Operation::kAllGather},
    {"push-pull", Operation::kPushPull},
    {"push", Operation::kPush},
    {"pull", Operation::kPull}};

// --- reading --------------------------------------------------------------------------------------------

Curve read_curve(const JsonPlace& place) {
  const std::size_t count = place.size(1, kMostPiecesOfCurve);
  std::vector<CurvePiece> pieces(count);
  for (std::size_t i = 0; i < count; ++i) {
    const JsonPlace piece = place[i];
    piece.expect_keys({"from_bytes", "alpha_seconds", "beta_seconds_per_byte"});
    const JsonPlace from = piece["from_bytes"];
    const JsonPlace alpha = piece["alpha_seconds"];
    const JsonPlace beta = piece["beta_seconds_per_byte"];
    pieces[i] = {Bytes{from.integer(0, kLargestSize)}, Seconds{alpha.number(0, kLargestAlpha)},
                 SecondsPerByte{beta.number(0, kLargestBeta)}};
  }
  try {
    return Curve(std::move(pieces));
  } catch (const Error& e) {
    place.fail_because(e.what());
  }
}

FitQuality read_quality(const JsonPlace& place) {
  place.expect_keys({"samples", "r_squared", "median_relative", "p90_relative"});
  const JsonPlace samples = place["samples"];
  const JsonPlace r_squared = place["r_squared"];
  const JsonPlace median = place["median_relative"];
  const JsonPlace p90 = place["p90_relative"];
  return {static_cast<int>(samples.integer(0, kMostSamples)), r_squared.number(-kLargest, 1),
          median.number(0, kLargest), p90.number(0, kLargest)};
}

std::vector<double> read_covariance(const JsonPlace& place, std::size_t pieces) {
  const std::size_t parameters = 2 * pieces;
  const std::size_t count = place.size(0, parameters * parameters);
  if (count != 0 && count != parameters * parameters) {
    place.fail_because("expected none or " + std::to_string(parameters * parameters) + " elements, got " +
                       std::to_string(count));
  }
  std::vector<double> covariance(count);
  for (std::size_t i = 0; i < count; ++i) {
    const JsonPlace value = place[i];
    const bool diagonal = i % (parameters + 1) == 0;
    covariance[i] = value.number(diagonal ? 0 : -kLargest, kLargest);
  }
  return covariance;
}

/// Nothing where nothing is said.
Deviation read_deviation(const JsonPlace& parent, std::string_view key) {
  const auto place = parent.find(key);
  if (!place) return {};
  place->expect_keys({"startup", "rate"});
  const JsonPlace startup = (*place)["startup"];
  const JsonPlace rate = (*place)["rate"];
  return {startup.number(0, kLargestDeviation), rate.number(0, kLargestDeviation)};
}

Fit read_fit(const JsonPlace& place) {
  place.expect_keys({"curve", "quality", "smallest_bytes", "largest_bytes", "covariance", "deviation"});
  Fit fit;
  const JsonPlace curve = place["curve"];
  fit.curve = read_curve(curve);
  const JsonPlace smallest = place["smallest_bytes"];
  fit.smallest = Bytes{smallest.integer(0, kLargestSize)};
  const JsonPlace largest = place["largest_bytes"];
  fit.largest = Bytes{largest.integer(0, kLargestSize)};
  if (fit.largest < fit.smallest) {
    largest.fail("at least smallest_bytes = " + std::to_string(fit.smallest.count));
  }
  if (const auto quality = place.find("quality")) {
    fit.quality = read_quality(*quality);
  }
  if (const auto covariance = place.find("covariance")) {
    fit.covariance = read_covariance(*covariance, fit.curve.pieces().size());
  }
  fit.deviation = read_deviation(place, "deviation");
  return fit;
}

Fit read_optional_fit(const JsonPlace& parent, std::string_view key) {
  const auto found = parent.find(key);
  return found ? read_fit(*found) : Fit{};
}

LinkFit read_link(const JsonPlace& place) {
  place.expect_keys({"alone", "streamed", "duplex"});
  const JsonPlace alone = place["alone"];
  return {read_fit(alone), read_optional_fit(place, "streamed"), read_optional_fit(place, "duplex")};
}

OperationFit read_operation(const JsonPlace& place) {
  place.expect_keys({"road", "operation", "workers", "alone", "streamed"});
  OperationFit fit;
  const JsonPlace road = place["road"];
  fit.road = road_from_json(road);
  const JsonPlace operation = place["operation"];
  fit.operation = read_enum(operation, kOperations);
  const JsonPlace workers = place["workers"];
  fit.workers = static_cast<int>(workers.integer(1, kMostWorkers));
  const JsonPlace alone = place["alone"];
  fit.alone = read_fit(alone);
  fit.streamed = read_optional_fit(place, "streamed");
  return fit;
}

Scalar read_scalar(const JsonPlace& parent, std::string_view key) {
  const auto place = parent.find(key);
  if (!place) {
    return {};
  }
  place->expect_keys({"value", "half_width"});
  const JsonPlace value = (*place)["value"];
  const JsonPlace half_width = (*place)["half_width"];
  return {value.number(0, kLargestScalar), half_width.number(0, kLargestScalar)};
}

std::map<LinkClass, LinkFit> read_links(const JsonPlace& place) {
  place.expect_keys({kLinkClasses[0].first, kLinkClasses[1].first});
  std::map<LinkClass, LinkFit> links;
  for (const auto& [name, link] : kLinkClasses) {
    if (const auto found = place.find(name)) {
      links[link] = read_link(*found);
    }
  }
  return links;
}

std::map<std::string, std::string> read_facts(const JsonPlace& place) {
  std::map<std::string, std::string> facts;
  for (const auto& [key, value] : place.object().items()) {
    if (facts.size() == kMostFacts) {
      place.fail_because("more than " + std::to_string(kMostFacts) + " facts");
    }
    const JsonPlace fact = place[key];
    facts[key] = fact.text();
  }
  return facts;
}

/// 1 where nothing is said.
double read_factor(const JsonPlace& parent, std::string_view key) {
  const auto place = parent.find(key);
  return place ? place->number(1 / kLargestFactor, kLargestFactor) : 1;
}

std::vector<Host> read_hosts(const JsonPlace& place) {
  const std::size_t count = place.size(0, kMostHosts);
  std::vector<Host> hosts(count);
  for (std::size_t i = 0; i < count; ++i) {
    const JsonPlace host = place[i];
    host.expect_keys({"name", "slots", "latency_factor", "time_per_byte_factor", "compute_factor"});
    const JsonPlace name = host["name"];
    const JsonPlace slots = host["slots"];
    hosts[i] = {name.name(), static_cast<int>(slots.integer(1, kMostSlots)),
                HostPace{read_factor(host, "latency_factor"), read_factor(host, "time_per_byte_factor"),
                         read_factor(host, "compute_factor")}};
  }
  return hosts;
}

std::vector<OperationFit> read_operations(const JsonPlace& place) {
  const std::size_t count = place.size(0, kMostOperations);
  std::vector<OperationFit> operations;
  operations.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const JsonPlace operation = place[i];
    operations.push_back(read_operation(operation));
  }
  return operations;
}

// --- writing --------------------------------------------------------------------------------------------

nlohmann::json deviation_json(const Deviation& deviation) {
  return {{"startup", deviation.startup}, {"rate", deviation.rate}};
}

nlohmann::json fit_json(const Fit& fit) {
  nlohmann::json curve = nlohmann::json::array();
  for (const CurvePiece& piece : fit.curve.pieces()) {
    curve.push_back({{"from_bytes", piece.from.count},
                     {"alpha_seconds", piece.alpha.count()},
                     {"beta_seconds_per_byte", piece.beta.value}});
  }
  nlohmann::json json = {{"curve", std::move(curve)},
                         {"quality",
                          {{"samples", fit.quality.samples},
                           {"r_squared", fit.quality.r_squared},
                           {"median_relative", fit.quality.median_relative},
                           {"p90_relative", fit.quality.p90_relative}}},
                         {"smallest_bytes", fit.smallest.count},
                         {"largest_bytes", fit.largest.count},
                         {"covariance", fit.covariance}};
  if (fit.deviation.any()) json["deviation"] = deviation_json(fit.deviation);
  return json;
}

/// Adds a fit unless it is empty: what was not measured is not written.
void put_fit(nlohmann::json& parent, const char* key, const Fit& fit) {
  if (!fit.curve.empty()) {
    parent[key] = fit_json(fit);
  }
}

nlohmann::json host_json(const Host& host) {
  nlohmann::json json = {{"name", host.name}, {"slots", host.slots}};
  if (host.pace.latency != 1) json["latency_factor"] = host.pace.latency;
  if (host.pace.time_per_byte != 1) json["time_per_byte_factor"] = host.pace.time_per_byte;
  if (host.pace.compute != 1) json["compute_factor"] = host.pace.compute;
  return json;
}

nlohmann::json scalar_json(const Scalar& scalar) {
  return {{"value", scalar.value}, {"half_width", scalar.half_width}};
}

}  // namespace

int Cluster::ranks() const {
  int sum = 0;
  for (const Host& host : hosts) {
    sum += host.slots;
  }
  return sum;
}

const OperationFit* find_operation(const Cluster& cluster, const Road& road, Operation operation,
                                   int workers) {
  const auto found =
      std::find_if(cluster.operations.begin(), cluster.operations.end(), [&](const OperationFit& fit) {
        return fit.operation == operation && fit.workers == workers && fit.road == road;
      });
  return found == cluster.operations.end() ? nullptr : &*found;
}

Cluster cluster_from_json(const nlohmann::json& json) {
  const JsonPlace document(json);
  document.object();
  document.expect_format(kClusterFormat);
  document.expect_keys({"format", "name", "transport", "fingerprint", "facts", "hosts", "links", "operations",
                        "reduce_seconds_per_byte", "copy_seconds_per_byte", "interference", "contention",
                        "backlog_seconds", "connection_backlog_seconds", "jitter_seconds",
                        "formula_deviation", "plan_deviation"});
  Cluster cluster;
  const JsonPlace name = document["name"];
  cluster.name = name.text();
  const JsonPlace transport = document["transport"];
  cluster.transport = transport.text();
  if (const auto fingerprint = document.find("fingerprint")) {
    cluster.fingerprint = fingerprint->text();
  }
  if (const auto facts = document.find("facts")) {
    cluster.facts = read_facts(*facts);
  }
  const JsonPlace hosts = document["hosts"];
  cluster.hosts = read_hosts(hosts);
  if (const auto links = document.find("links")) {
    cluster.links = read_links(*links);
  }
  if (const auto operations = document.find("operations")) {
    cluster.operations = read_operations(*operations);
  }
  cluster.reduce_seconds_per_byte = read_scalar(document, "reduce_seconds_per_byte");
  cluster.copy_seconds_per_byte = read_scalar(document, "copy_seconds_per_byte");
  cluster.interference = read_scalar(document, "interference");
  cluster.contention = read_scalar(document, "contention");
  cluster.backlog_seconds = read_scalar(document, "backlog_seconds");
  cluster.connection_backlog_seconds = read_scalar(document, "connection_backlog_seconds");
  cluster.jitter_seconds = read_scalar(document, "jitter_seconds");
  cluster.formula_deviation = read_deviation(document, "formula_deviation");
  if (const auto plan = document.find("plan_deviation"))
    cluster.plan_deviation = plan->number(0, kLargestDeviation);
  return cluster;
}

nlohmann::json to_json(const Cluster& cluster) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const Host& host : cluster.hosts) hosts.push_back(host_json(host));
  nlohmann::json links = nlohmann::json::object();
  for (const auto& [link, fit] : cluster.links) {
    nlohmann::json& entry = links[to_string(link)] = nlohmann::json::object();
    put_fit(entry, "alone", fit.alone);
    put_fit(entry, "streamed", fit.streamed);
    put_fit(entry, "duplex", fit.duplex);
  }
  nlohmann::json operations = nlohmann::json::array();
  for (const OperationFit& fit : cluster.operations) {
    nlohmann::json entry = {
        {"road", to_json(fit.road)}, {"operation", to_string(fit.operation)}, {"workers", fit.workers}};
    put_fit(entry, "alone", fit.alone);
    put_fit(entry, "streamed", fit.streamed);
    operations.push_back(std::move(entry));
  }
  nlohmann::json json = {{"format", kClusterFormat},
                         {"name", cluster.name},
                         {"transport", cluster.transport},
                         {"fingerprint", cluster.fingerprint},
                         {"facts", cluster.facts},
                         {"hosts", std::move(hosts)},
                         {"links", std::move(links)},
                         {"operations", std::move(operations)},
                         {"reduce_seconds_per_byte", scalar_json(cluster.reduce_seconds_per_byte)},
                         {"copy_seconds_per_byte", scalar_json(cluster.copy_seconds_per_byte)},
                         {"interference", scalar_json(cluster.interference)},
                         {"jitter_seconds", scalar_json(cluster.jitter_seconds)}};
  const auto put_if_any = [&](const char* key, const Scalar& scalar) {
    if (scalar.value > 0 || scalar.half_width > 0) json[key] = scalar_json(scalar);
  };
  put_if_any("contention", cluster.contention);
  put_if_any("backlog_seconds", cluster.backlog_seconds);
  put_if_any("connection_backlog_seconds", cluster.connection_backlog_seconds);
  if (cluster.formula_deviation.any()) json["formula_deviation"] = deviation_json(cluster.formula_deviation);
  if (cluster.plan_deviation > 0) json["plan_deviation"] = cluster.plan_deviation;
  return json;
}

std::string to_string(Operation operation) { return enum_name(operation, kOperations); }

std::string to_string(LinkClass link) { return enum_name(link, kLinkClasses); }

}  // namespace commtune
