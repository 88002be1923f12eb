#include "probes/analysis/fit_cluster.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "executor/base/wire_revision.h"
#include "perfmodel/base/digest.h"
#include "perfmodel/cost/road_factor.h"
#include "probes/analysis/fit_nccl.h"
#include "probes/analysis/fit_operations.h"
#include "probes/analysis/formula_shape.h"
#include "probes/analysis/links.h"
#include "probes/analysis/merged_samples.h"

namespace commtune::probes {

namespace {

// Rates of memory are taken from sizes on where start-up no longer counts: at 10 GB/s their bytes take 6.6
// us. Larger ones would leave fewer sizes to take the rate from.
constexpr Bytes kRateFrom = 64_KiB;

// A stream's message whose time is so many times an empty one's is hardly anything but its bytes: the rest is
// an eighth of it at most. From fewer on, a bend would be cut short; from more on, formulas would have a say
// where the bytes are measured.
constexpr double kHardlyButBytes = 8;

// What plans take beside what the costs of their roads say, where no run of the cluster told yet. On the
// clusters of tests/bench/accuracy 95 % of all predictions are within 5.9 %, which is 3 % of deviation; some
// 2 % of them are what curves leave open between their sizes, which the fits have themselves.
constexpr double kPlanDeviation = 0.022;

// A part of what handing over a message takes that its bytes do not hide, where the samples do not tell: a
// link's is mostly headers, which are bytes as well.
constexpr double kHeaders = 1;

std::vector<Host> hosts_of(const std::vector<std::string>& rank_hosts) {
  std::vector<Host> hosts;
  for (const std::string& name : rank_hosts) {
    const auto known =
        std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; });
    if (known == hosts.end()) {
      hosts.push_back({name, 1});
    } else {
      ++known->slots;
    }
  }
  return hosts;
}

double median(std::vector<double> values) { return median_interval(values).median; }

/// An empty fit where the samples cannot carry one.
Fit fit_of(const std::vector<Sample>& samples, const FitOptions& options) {
  const std::vector<Sample> by_size = merged_by_size(samples);
  return by_size.size() < 2 ? Fit{} : fit_curve(by_size, options);
}

/// A link's. Where handing over gives way to bytes is borrowed, up to the first size that is hardly anything
/// but its bytes.
Fit fit_of_stream(const std::vector<Sample>& samples, const FitOptions& options) {
  const std::vector<Sample> by_size = merged_by_size(samples);
  if (by_size.size() < 2) return {};
  const Sample &least = by_size.front(), &most = by_size.back();
  const Curve bytes{Seconds{0}, SecondsPerByte{most.time.count() / static_cast<double>(most.size.count)}};
  const auto bulk =
      std::ranges::find_if(by_size, [&](const Sample& s) { return s.time > least.time * kHardlyButBytes; });
  const std::span bend(by_size.begin(), bulk == by_size.end() ? bulk : std::next(bulk));
  const FormulaShape shape{stream_shape(by_size, bytes, kHeaders), least.size, bend.back().size};
  return fit_with_borrowed(by_size, borrowed_samples(bend, shape), options);
}

bool is_empty(const Fit& fit) { return fit.curve.empty(); }

using SamplesByPair = std::map<std::pair<int, int>, std::vector<Sample>>;

/// By source and destination.
struct LinkSamples {
  SamplesByPair alone, streamed, duplex;
};

/// The survey streams a size once with as many under way as it needs for the matrix, the sampling plan
/// several times with as many as the size needs: of one pair's samples of a size the most repeated counts.
void add_most_repeated(std::vector<Sample>& samples, const Sample& sample) {
  const auto known = std::find_if(samples.begin(), samples.end(),
                                  [&](const Sample& other) { return other.size == sample.size; });
  if (known == samples.end()) {
    samples.push_back(sample);
  } else if (sample.repetitions >= known->repetitions) {
    *known = sample;
  }
}

/// Most pairs are measured at a size or two, for the matrix: that says nothing about the shape of the curve,
/// and a slow host's pairs must not bend it. So the pairs with the most sizes make the curve.
std::vector<Sample> curve_samples(const SamplesByPair& pairs) {
  std::size_t most = 0;
  for (const auto& [ends, samples] : pairs) most = std::max(most, samples.size());
  std::vector<Sample> result;
  for (const auto& [ends, samples] : pairs) {
    if (samples.size() == most) result.insert(result.end(), samples.begin(), samples.end());
  }
  return result;
}

/// The same for streams, with what the survey streamed over all other pairs that are as fast: what bytes cost
/// between two hosts is far surer from all of them than from the few streams of one.
std::vector<Sample> stream_samples(const SamplesByPair& pairs) {
  std::vector<Sample> result;
  for (const Sample& own : merged_by_size(curve_samples(pairs))) {
    std::vector<Sample> same_size;
    for (const auto& [ends, samples] : pairs) {
      std::ranges::copy_if(samples, std::back_inserter(same_size),
                           [&](const Sample& sample) { return sample.size == own.size; });
    }
    const Seconds limit = std::ranges::min(same_size, {}, &Sample::time).time * kSameClass;
    if (own.time <= limit)
      std::erase_if(same_size, [&](const Sample& sample) { return sample.time > limit; });
    result.push_back(own.time <= limit ? merged(same_size) : own);
  }
  return result;
}

/// Samples sorted by what they are fitted to.
struct Sorted {
  std::map<LinkClass, LinkSamples> links;
  std::vector<OperationSamples> operations, nccl;
  std::map<WireFormat, std::vector<Sample>> casts, cast_sums;
  std::vector<Sample> sum, copy, step_idle, step_busy, jitter, head_of_line, connection_head_of_line;
  std::vector<Sample> traffic_alone, traffic_computing, launch, upload, download;
};

OperationSamples& find_or_add(std::vector<OperationSamples>& operations, Quantity quantity) {
  quantity.in_flight = 1;
  const auto known = std::find_if(operations.begin(), operations.end(),
                                  [&](const OperationSamples& entry) { return entry.quantity == quantity; });
  if (known != operations.end()) {
    return *known;
  }
  operations.push_back({quantity, {}, {}});
  return operations.back();
}

std::optional<LinkClass> link_class(const Quantity& quantity, const std::vector<std::string>& rank_hosts) {
  const auto from = static_cast<std::size_t>(quantity.source);
  const auto to = static_cast<std::size_t>(quantity.destination);
  if (from >= rank_hosts.size() || to >= rank_hosts.size()) {
    return std::nullopt;  // measured on more ranks than there are now
  }
  return rank_hosts[from] == rank_hosts[to] ? LinkClass::kIntraHost : LinkClass::kInterHost;
}

/// Whether the same operation was streamed at the same size with at least twice as many under way, as it is
/// where fewer hid too little of its latency.
bool is_streamed_deeper(const ProbeSample& sample, std::span<const ProbeSample> samples) {
  const Quantity& quantity = sample.quantity;
  if (quantity.subject != Subject::kOperation || quantity.in_flight == 1) return false;
  return std::ranges::any_of(samples, [&](const ProbeSample& other) {
    if (other.sample.size != sample.sample.size || other.quantity.in_flight < 2 * quantity.in_flight)
      return false;
    Quantity same = other.quantity;
    same.in_flight = quantity.in_flight;
    return same == quantity;
  });
}

void sort_in(Sorted& sorted, const ProbeSample& sample, const std::vector<std::string>& rank_hosts) {
  const Quantity& quantity = sample.quantity;
  switch (quantity.subject) {
    case Subject::kMessage:
      if (const auto link = link_class(quantity, rank_hosts)) {
        LinkSamples& of = sorted.links[*link];
        SamplesByPair& pairs = quantity.in_flight == 1 ? of.alone : of.streamed;
        add_most_repeated(pairs[{quantity.source, quantity.destination}], sample.sample);
      }
      return;
    case Subject::kExchange:
      if (const auto link = link_class(quantity, rank_hosts)) {
        add_most_repeated(sorted.links[*link].duplex[{quantity.source, quantity.destination}], sample.sample);
      }
      return;
    case Subject::kOperation: {
      auto& of = quantity.nccl.is_own_choice() ? sorted.operations : sorted.nccl;
      OperationSamples& entry = find_or_add(of, quantity);
      (quantity.in_flight == 1 ? entry.alone : entry.streamed).push_back(sample.sample);
      return;
    }
    case Subject::kSum:
      sorted.sum.push_back(sample.sample);
      return;
    case Subject::kCopy:
      sorted.copy.push_back(sample.sample);
      return;
    case Subject::kCast:
      sorted.casts[quantity.wire].push_back(sample.sample);
      return;
    case Subject::kCastSum:
      sorted.cast_sums[quantity.wire].push_back(sample.sample);
      return;
    case Subject::kStep:
      (quantity.in_flight > 0 ? sorted.step_busy : sorted.step_idle).push_back(sample.sample);
      return;
    case Subject::kJitter:
      sorted.jitter.push_back(sample.sample);
      return;
    case Subject::kHeadOfLine:
      (goes_through_servers(quantity.road) ? sorted.head_of_line : sorted.connection_head_of_line)
          .push_back(sample.sample);
      return;
    case Subject::kTraffic:
      (quantity.computing ? sorted.traffic_computing : sorted.traffic_alone).push_back(sample.sample);
      return;
    case Subject::kLaunch:
      sorted.launch.push_back(sample.sample);
      return;
    case Subject::kUpload:
      sorted.upload.push_back(sample.sample);
      return;
    case Subject::kDownload:
      sorted.download.push_back(sample.sample);
      return;
    case Subject::kPlan:  // corrects fits, see correct_by_plans()
      return;
  }
}

/// Those that NCCL was told to run so, and by its own choice, which is the road `library`.
std::vector<OperationSamples> with_own_choice(const Sorted& sorted) {
  std::vector<OperationSamples> all = sorted.nccl;
  for (const OperationSamples& own : sorted.operations) {
    const bool compared = std::ranges::any_of(sorted.nccl, [&](const OperationSamples& told) {
      Quantity same = told.quantity;
      same.nccl = {};
      return same == own.quantity;
    });
    if (compared) all.push_back(own);
  }
  return all;
}

/// Seconds per byte over the sizes that are large enough, or over all when none is.
Scalar rate_of(const std::vector<Sample>& samples) {
  std::vector<double> rates, widths;
  for (const Bytes from : {kRateFrom, Bytes{1}}) {
    for (const Sample& sample : samples) {
      if (sample.size >= from && rates.size() < samples.size()) {
        const auto bytes = static_cast<double>(sample.size.count);
        rates.push_back(sample.time.count() / bytes);
        widths.push_back(sample.half_width.count() / bytes);
      }
    }
    if (!rates.empty()) {
      return {median(rates), median(widths)};
    }
  }
  return {};
}

/// By how much something takes longer beside something else than alone; never negative.
Scalar slow_down(const std::vector<Sample>& alone, const std::vector<Sample>& beside) {
  if (alone.empty() || beside.empty()) {
    return {};
  }
  const Sample& without = alone.back();
  const Sample& with = beside.back();
  const double ratio = with.time / without.time;
  const double doubt = ratio * std::hypot(with.half_width / with.time, without.half_width / without.time);
  return {std::max(ratio - 1, 0.0), doubt};
}

/// Of each road and number of workers what the last run of a plan told; the samples as they were measured.
void correct_by_plans(Cluster& cluster, std::span<const ProbeSample> samples) {
  std::map<int, std::vector<RoadFactor>> by_workers;
  for (const ProbeSample& sample : samples) {
    const Quantity& quantity = sample.quantity;
    if (quantity.subject != Subject::kPlan) continue;
    std::vector<RoadFactor>& factors = by_workers[quantity.workers];
    std::erase_if(factors, [&](const RoadFactor& factor) { return factor.road == quantity.road; });
    factors.push_back({quantity.road, sample.costs.alone, sample.costs.streamed});
  }
  for (const auto& [workers, factors] : by_workers) cluster = refitted(std::move(cluster), factors, workers);
}

Scalar last_of(const std::vector<Sample>& samples) {
  if (samples.empty()) return {};
  return {samples.back().time.count(), samples.back().half_width.count()};
}

}  // namespace

std::vector<ProbeSample> latest(std::span<const ProbeSample> samples) {
  std::vector<ProbeSample> result;
  for (const ProbeSample& sample : samples) {
    const auto known = std::find_if(result.begin(), result.end(), [&](const ProbeSample& other) {
      return other.quantity == sample.quantity && other.sample.size == sample.sample.size;
    });
    if (known == result.end()) {
      result.push_back(sample);
    } else {
      *known = sample;
    }
  }
  return result;
}

bool enters_fingerprint(const std::string& name, const std::string& value) {
  if (name == kWireRevisionFact) return value != std::to_string(kFirstWireRevision);
  return !name.starts_with("release.");
}

std::string fingerprint(const ClusterFacts& facts) {
  Digest digest;
  digest.add(facts.transport).add(static_cast<std::uint64_t>(facts.rank_hosts.size()));
  for (const std::string& host : facts.rank_hosts) {
    digest.add(host);
  }
  std::vector<std::pair<std::string, std::string>> entering;
  for (const auto& [key, value] : facts.facts) {
    if (enters_fingerprint(key, value)) entering.emplace_back(key, value);
  }
  digest.add(static_cast<std::uint64_t>(entering.size()));
  for (const auto& [key, value] : entering) {
    digest.add(key).add(value);
  }
  return digest.hex();
}

// The curves are those of a typical pair. A slow direction counts for both, since every road sends and
// receives through each card.
std::vector<Host> paced_hosts(std::span<const ProbeSample> samples,
                              const std::vector<std::string>& rank_hosts) {
  std::vector<Host> hosts = hosts_of(rank_hosts);
  for (const Verdict& verdict : analyse_links(samples, rank_hosts).verdicts) {
    if (verdict.kind == VerdictKind::kSlowPair) continue;
    HostSlowdown& slowdown = hosts[static_cast<std::size_t>(verdict.host)].slowdown;
    double& factor = verdict.kind == VerdictKind::kLateHost ? slowdown.latency : slowdown.time_per_byte;
    factor = std::max(factor, verdict.ratio);
  }
  return hosts;
}

Cluster fit_cluster(std::span<const ProbeSample> samples, const ClusterFacts& facts,
                    const FitOptions& options) {
  Sorted sorted;
  const std::vector<ProbeSample> current = latest(samples);
  for (const ProbeSample& sample : current) {
    if (!is_streamed_deeper(sample, current)) sort_in(sorted, sample, facts.rank_hosts);
  }
  Cluster cluster;
  cluster.name = facts.name;
  cluster.transport = facts.transport;
  cluster.fingerprint = fingerprint(facts);
  cluster.facts = facts.facts;
  cluster.hosts = paced_hosts(current, facts.rank_hosts);
  cluster.traits = facts.traits;
  cluster.device = facts.device;
  for (const auto& [link, of] : sorted.links) {
    LinkFit fit{fit_of(curve_samples(of.alone), options), fit_of_stream(stream_samples(of.streamed), options),
                fit_of_stream(curve_samples(of.duplex), options)};
    if (!is_empty(fit.alone)) {
      cluster.links.emplace(link, std::move(fit));
    }
  }
  cluster.reduce_seconds_per_byte = rate_of(sorted.sum);
  if (!sorted.operations.empty()) {
    FittedOperations operations = fit_operations(sorted.operations, cluster, options);
    cluster.operations = std::move(operations.fits);
    cluster.formula_deviation = operations.formula_deviation;
    cluster.plan_deviation = kPlanDeviation;
  }
  cluster.nccl = fit_nccl(with_own_choice(sorted), options);
  cluster.copy_seconds_per_byte = rate_of(sorted.copy);
  for (const auto& [wire, casts] : sorted.casts) {
    const auto sums = sorted.cast_sums.find(wire);
    if (sums != sorted.cast_sums.end()) cluster.casts[wire] = {rate_of(casts), rate_of(sums->second)};
  }
  cluster.interference = slow_down(sorted.step_idle, sorted.step_busy);
  cluster.contention = slow_down(sorted.traffic_alone, sorted.traffic_computing);
  cluster.gpu = {last_of(sorted.launch), rate_of(sorted.upload), rate_of(sorted.download)};
  cluster.jitter_seconds = last_of(sorted.jitter);
  cluster.head_of_line_seconds = last_of(sorted.head_of_line);
  cluster.connection_head_of_line_seconds = last_of(sorted.connection_head_of_line);
  correct_by_plans(cluster, samples);
  return cluster;
}

}  // namespace commtune::probes
