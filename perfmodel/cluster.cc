#include "perfmodel/cluster.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/fields.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/road_fields.h"

namespace commtune {

namespace {

// Bounds that keep sums of slots in an int and costs of any message finite.
constexpr std::size_t kMostHosts = 100'000;
constexpr std::uint64_t kMostSlots = 10'000;
constexpr std::size_t kMostOperations = 100'000;
constexpr std::size_t kMostNcclFits = 10'000;
constexpr std::size_t kMostFacts = 10'000;
constexpr std::size_t kMostPiecesOfCurve = 64;
constexpr std::size_t kMostTransports = 16;
constexpr std::uint64_t kMostCuts = 1'000;
constexpr std::uint64_t kMostWorkers = 1'000'000;
constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostSamples = 1'000'000'000;
constexpr double kLargestAlpha = 1e6;   // seconds
constexpr double kLargestBeta = 1e3;    // seconds per byte
constexpr double kLargestScalar = 1e6;  // each in its own unit
constexpr double kLargestFactor = 1e4;  // of a host's slowdown, and one over it the smallest
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

}  // namespace

// --- fields ---------------------------------------------------------------------------------------------

/// What was not measured is not written.
bool is_usual(const Fit& fit, const Fit& /*nothing*/) { return fit.curve.empty(); }
bool is_usual(const Scalar& scalar, const Scalar& /*nothing*/) {
  return scalar.value == 0 && scalar.half_width == 0;
}
bool is_usual(const Casts& casts, const Casts& /*nothing*/) { return casts.empty(); }
bool is_usual(const std::vector<NcclFit>& fits, const std::vector<NcclFit>& /*nothing*/) {
  return fits.empty();
}
bool is_usual(const std::vector<Cluster>& others, const std::vector<Cluster>& /*nothing*/) {
  return others.empty();
}

template <typename Visitor, fields::Of<CurvePiece> Given>
void visit_fields(Visitor& visit, Given& piece) {
  visit("from_bytes", piece.from, fields::Whole{0, kLargestSize});
  visit("alpha_seconds", piece.alpha, fields::Real{0, kLargestAlpha});
  visit("beta_seconds_per_byte", piece.beta, fields::Real{0, kLargestBeta});
}

void read_fields(const JsonPlace& place, Curve& curve) {
  std::vector<CurvePiece> pieces;
  fields::read_value(place, pieces, fields::ListOf{1, kMostPiecesOfCurve, fields::Object{}});
  try {
    curve = Curve(std::move(pieces));
  } catch (const Error& e) {
    place.fail_because(e.what());
  }
}

nlohmann::json write_fields(const Curve& curve) {
  return fields::written(curve.pieces(), fields::ListOf{1, kMostPiecesOfCurve, fields::Object{}});
}

template <typename Visitor, fields::Of<FitQuality> Given>
void visit_fields(Visitor& visit, Given& quality) {
  visit("samples", quality.samples, fields::Whole{0, kMostSamples});
  visit("r_squared", quality.r_squared, fields::Real{-kLargest, 1});
  visit("median_relative", quality.median_relative, fields::Real{0, kLargest});
  visit("p90_relative", quality.p90_relative, fields::Real{0, kLargest});
}

template <typename Visitor, fields::Of<Deviation> Given>
void visit_fields(Visitor& visit, Given& deviation) {
  visit("startup", deviation.startup, fields::Real{0, kLargestDeviation});
  visit("rate", deviation.rate, fields::Real{0, kLargestDeviation});
  visit.when_set("opposed", deviation.opposed, fields::Boolean{});
}

template <typename Visitor, fields::Of<Fit> Given>
void visit_fields(Visitor& visit, Given& fit) {
  visit("curve", fit.curve, fields::Object{});
  visit(fields::optional("quality"), fit.quality, fields::Object{});
  visit("smallest_bytes", fit.smallest, fields::Whole{0, kLargestSize});
  visit("largest_bytes", fit.largest, fields::Whole{0, kLargestSize});
  const std::size_t parameters = 2 * fit.curve.pieces().size();
  visit(fields::optional("covariance"), fit.covariance,
        fields::ListOf{0, parameters * parameters, fields::Real{-kLargest, kLargest}});
  visit.when_set("deviation", fit.deviation, fields::Object{});
}

/// None, or one of each pair of parameters; no variance is negative.
void check_covariance(const JsonPlace& place, std::size_t parameters) {
  const std::size_t count = place.size(0, parameters * parameters);
  if (count != 0 && count != parameters * parameters) {
    place.fail_because("expected none or " + std::to_string(parameters * parameters) + " elements, got " +
                       std::to_string(count));
  }
  for (std::size_t i = 0; i < count; i += parameters + 1) {
    const JsonPlace variance = place[i];
    variance.number(0, kLargest);
  }
}

void read_fields(const JsonPlace& place, Fit& fit) {
  fields::read_fields(place, fit);
  if (fit.largest < fit.smallest) {
    const JsonPlace largest = place["largest_bytes"];
    largest.fail("at least smallest_bytes = " + std::to_string(fit.smallest.count));
  }
  if (const auto covariance = place.find("covariance"))
    check_covariance(*covariance, 2 * fit.curve.pieces().size());
}

template <typename Visitor, fields::Of<LinkFit> Given>
void visit_fields(Visitor& visit, Given& link) {
  visit("alone", link.alone, fields::Object{});
  visit.when_set("streamed", link.streamed, fields::Object{});
  visit.when_set("duplex", link.duplex, fields::Object{});
}

template <typename Visitor, fields::Of<OperationFit> Given>
void visit_fields(Visitor& visit, Given& fit) {
  visit("road", fit.road, fields::Object{});
  visit("operation", fit.operation, fields::OneOf{kOperations});
  visit("workers", fit.workers, fields::Whole{1, kMostWorkers});
  visit("alone", fit.alone, fields::Object{});
  visit.when_set("streamed", fit.streamed, fields::Object{});
}

void read_fields(const JsonPlace& place, NcclTuning& tuning) {
  const auto named = nccl_tuning_named(place.name());
  if (!named) place.fail(nccl_tuning_rule());
  tuning = *named;
}

nlohmann::json write_fields(const NcclTuning& tuning) { return to_string(tuning); }

bool is_usual(const NcclTuning& tuning, const NcclTuning& /*own*/) { return tuning.is_own_choice(); }

template <typename Visitor, fields::Of<NcclFit> Given>
void visit_fields(Visitor& visit, Given& fit) {
  visit("operation", fit.operation, fields::OneOf{kOperations});
  visit.when_set("tuning", fit.tuning, fields::Object{});
  visit("workers", fit.workers, fields::Whole{1, kMostWorkers});
  visit("alone", fit.alone, fields::Object{});
}

template <typename Visitor, fields::Of<Scalar> Given>
void visit_fields(Visitor& visit, Given& scalar) {
  visit("value", scalar.value, fields::Real{0, kLargestScalar});
  visit("half_width", scalar.half_width, fields::Real{0, kLargestScalar});
}

template <typename Visitor, fields::Of<CastCosts> Given>
void visit_fields(Visitor& visit, Given& costs) {
  visit("cast_seconds_per_byte", costs.cast_seconds_per_byte, fields::Object{});
  visit("reduce_seconds_per_byte", costs.reduce_seconds_per_byte, fields::Object{});
}

bool is_usual(const GpuCosts& costs, const GpuCosts& /*nothing*/) { return costs.launch_seconds.value == 0; }

template <typename Visitor, fields::Of<GpuCosts> Given>
void visit_fields(Visitor& visit, Given& costs) {
  visit("launch_seconds", costs.launch_seconds, fields::Object{});
  visit("upload_seconds_per_byte", costs.upload_seconds_per_byte, fields::Object{});
  visit("download_seconds_per_byte", costs.download_seconds_per_byte, fields::Object{});
}

void read_fields(const JsonPlace& place, Casts& casts) {
  const std::string bf16 = to_string(kCasts[0]), fp16 = to_string(kCasts[1]);
  place.expect_keys({bf16, fp16});
  for (const WireFormat wire : kCasts) {
    if (const auto found = place.find(to_string(wire))) fields::read_fields(*found, casts[wire]);
  }
}

nlohmann::json write_fields(const Casts& casts) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [wire, costs] : casts) out[to_string(wire)] = fields::write_fields(costs);
  return out;
}

using Links = std::map<LinkClass, LinkFit>;

void read_fields(const JsonPlace& place, Links& links) {
  place.expect_keys({kLinkClasses[0].first, kLinkClasses[1].first});
  for (const auto& [name, link] : kLinkClasses) {
    if (const auto found = place.find(name)) fields::read_fields(*found, links[link]);
  }
}

nlohmann::json write_fields(const Links& links) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [link, fit] : links) out[to_string(link)] = fields::write_fields(fit);
  return out;
}

template <typename Visitor, fields::Of<Host> Given>
void visit_fields(Visitor& visit, Given& host) {
  constexpr fields::Real kFactor{1 / kLargestFactor, kLargestFactor};
  visit("name", host.name, fields::Name{});
  visit("slots", host.slots, fields::Whole{1, kMostSlots});
  visit.when_set("latency_factor", host.slowdown.latency, kFactor, 1.0);
  visit.when_set("time_per_byte_factor", host.slowdown.time_per_byte, kFactor, 1.0);
  visit.when_set("compute_factor", host.slowdown.compute, kFactor, 1.0);
}

bool is_usual(const TransferTraits& traits, const TransferTraits& /*assumed*/) { return traits.assumed; }

template <typename Visitor, fields::Of<TransferTraits> Given>
void visit_fields(Visitor& visit, Given& traits) {
  visit("chunk_bytes", traits.chunk, fields::Whole{1, kLargestSize});
  visit("uncut_bytes", traits.uncut, fields::Whole{0, kLargestSize});
  visit("cuts", traits.cuts, fields::Whole{1, kMostCuts});
  visit("window", traits.window, fields::Whole{1, kMostCuts});
}

void read_fields(const JsonPlace& place, TransferTraits& traits) {
  fields::read_fields(place, traits);
  traits.assumed = false;
}

template <typename Visitor, fields::Of<Cluster> Given>
void visit_fields(Visitor& visit, Given& cluster) {
  constexpr fields::Object kObject{};
  visit.constant("format", kClusterFormat);
  visit("name", cluster.name, fields::Text{});
  visit("transport", cluster.transport, fields::Text{});
  visit(fields::optional("fingerprint"), cluster.fingerprint, fields::Text{});
  visit(fields::optional("facts"), cluster.facts, fields::Texts{kMostFacts, "facts"});
  visit("hosts", cluster.hosts, fields::ListOf{0, kMostHosts, kObject});
  visit.when_set("traits", cluster.traits, kObject);
  visit.when_set("device", cluster.device, fields::OneOf{kDeviceKinds});
  visit(fields::optional("links"), cluster.links, kObject);
  visit(fields::optional("operations"), cluster.operations, fields::ListOf{0, kMostOperations, kObject});
  visit.when_set("nccl", cluster.nccl, fields::ListOf{0, kMostNcclFits, kObject});
  visit(fields::optional("reduce_seconds_per_byte"), cluster.reduce_seconds_per_byte, kObject);
  visit(fields::optional("copy_seconds_per_byte"), cluster.copy_seconds_per_byte, kObject);
  visit.when_set("casts", cluster.casts, kObject);
  visit.when_set("gpu", cluster.gpu, kObject);
  visit(fields::optional("interference"), cluster.interference, kObject);
  visit.when_set("contention", cluster.contention, kObject);
  visit.when_set("backlog_seconds", cluster.head_of_line_seconds, kObject);
  visit.when_set("connection_backlog_seconds", cluster.connection_head_of_line_seconds, kObject);
  visit(fields::optional("jitter_seconds"), cluster.jitter_seconds, kObject);
  visit.when_set("formula_deviation", cluster.formula_deviation, kObject);
  visit.when_set("plan_deviation", cluster.plan_deviation, fields::Real{0, kLargestDeviation});
  visit.when_set("others", cluster.others, fields::ListOf{0, kMostTransports, kObject});
}

/// A transport is named once, and each of the others is the same cluster over one alone.
void check_others(const JsonPlace& place, const Cluster& cluster) {
  std::vector<std::string> known{cluster.transport};
  for (std::size_t i = 0; i < cluster.others.size(); ++i) {
    const Cluster& other = cluster.others[i];
    const JsonPlace others = place["others"];
    const JsonPlace at = others[i];
    if (!other.others.empty()) at.fail_because("others: one of the others has none of its own");
    if (other.name != cluster.name)
      at.fail_because("name: " + other.name + ": must be the cluster's, " + cluster.name);
    if (std::ranges::find(known, other.transport) != known.end())
      at.fail_because("transport: " + other.transport + " is there twice");
    known.push_back(other.transport);
  }
}

void read_fields(const JsonPlace& place, Cluster& cluster) {
  fields::read_fields(place, cluster);
  check_others(place, cluster);
}

int Cluster::ranks() const {
  int sum = 0;
  for (const Host& host : hosts) {
    sum += host.slots;
  }
  return sum;
}

std::vector<const Cluster*> over_each_transport(const Cluster& cluster) {
  std::vector<const Cluster*> each{&cluster};
  each.reserve(1 + cluster.others.size());
  for (const Cluster& other : cluster.others) each.push_back(&other);
  return each;
}

std::string transports_of(const Cluster& cluster) {
  std::string names = cluster.transport;
  for (const Cluster& other : cluster.others) names.append(", ").append(other.transport);
  return names;
}

const Cluster& over_transport(const Cluster& cluster, std::string_view transport) {
  if (transport.empty()) return cluster;
  for (const Cluster* each : over_each_transport(cluster)) {
    if (each->transport == transport) return *each;
  }
  throw Error(ErrorCode::kNotFound, "transport " + std::string(transport.substr(0, 64)) + ": cluster \"" +
                                        cluster.name + "\" was probed over " + transports_of(cluster));
}

Cluster& over_transport(Cluster& cluster, std::string_view transport) {
  return const_cast<Cluster&>(over_transport(std::as_const(cluster), transport));
}

double link_rate(const Cluster& cluster) {
  const auto link = cluster.links.find(LinkClass::kInterHost);
  if (link == cluster.links.end() || link->second.alone.curve.empty()) return 0;
  const double beta = link->second.alone.curve.pieces().back().beta.value;
  return beta > 0 ? 1 / beta : 0;
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
  Cluster cluster;
  read_fields(document, cluster);
  return cluster;
}

nlohmann::json to_json(const Cluster& cluster) { return fields::write_fields(cluster); }

std::string to_string(Operation operation) { return enum_name(operation, kOperations); }

std::string to_string(LinkClass link) { return enum_name(link, kLinkClasses); }

}  // namespace commtune
