#include "probes/sampling/link_survey.h"

#include <algorithm>
#include <map>

#include "probes/analysis/fit_cluster.h"
#include "probes/analysis/links.h"

namespace commtune::probes {

namespace {

constexpr Bytes kSmall{4};  // message that measures a latency: one float32, the smallest that plans send
// Round trips by which a pair's latency is measured: as many as fit into kSmallTime, within these limits.
// There are many because the hosts' own work delays some of them. More would take the survey's time from its
// streams.
constexpr int kFewestSmall = 9, kMostSmall = 40;
constexpr Seconds kSmallTime{20e-3};
// Hosts that share processors, as virtual machines do, delay each other's small messages, which looks like a
// longer way. So the latencies of a round's pairs are measured one pair after the other if that takes at most
// kOneByOneShare of the survey's time; otherwise all pairs of the round measure at once.
constexpr double kOneByOneShare = 0.25;
constexpr Seconds kOneByOneTime{10e-3};  // of round trips of one pair
constexpr Seconds kCommandTime{10e-3};   // that a command to measure one pair takes beside that
// A stream must be long against the time in which a connection opens its congestion window, so it has at
// least so many bytes, and at least as many as the link carries in so many round trips. Longer ones would
// leave time for fewer pairs.
constexpr double kLeastStreamBytes = 1 << 20;
constexpr double kRoundTrips = 6;
constexpr int kInFlight = 4, kMessages = 20;  // messages under way together, and in the whole stream
constexpr Bytes kSmallestPart{64 << 10};      // smallest message of a stream: a piece that a receiver gets
// Times that unusual links are measured again, at most: a slow host that is none would cost whole roads. It
// ends before where a time changes no verdict.
constexpr int kConfirmations = 3;

struct StreamShape {
  Bytes size;
  int in_flight = kInFlight, messages = kMessages;
};

/// Number of round trips that fit into `time`.
int small_messages(Seconds latency, Seconds time = kSmallTime) {
  return std::clamp(static_cast<int>(time / (2 * latency)), kFewestSmall, kMostSmall);
}

/// The stream by which a pair's time per byte is measured. Sizes are powers of two, so that two sessions that
/// guess the link a little differently measure the same size.
StreamShape shape_of(const LinkGuess& guess) {
  const double window = 2 * guess.latency.count() / guess.beta.value;
  const double bytes = std::max(kLeastStreamBytes, kRoundTrips * window) / kMessages;
  Bytes size = kSmallestPart;
  while (static_cast<double>(size.count) < bytes && size < kLargestSurveyed) size.count *= 2;
  return {size};
}

ProbeSample sample_of(const Pair& pair, int in_flight, Bytes size, std::vector<double> seconds) {
  ProbeSample sample;
  sample.quantity.source = pair.first;
  sample.quantity.destination = pair.second;
  sample.quantity.in_flight = in_flight;
  sample.raw_seconds = seconds;
  const MedianInterval interval = median_interval(seconds);
  sample.sample = {size, Seconds{interval.median}, Seconds{(interval.high - interval.low) / 2},
                   static_cast<int>(seconds.size())};
  return sample;
}

class Survey {
 public:
  Survey(Measurement& measurement, const ProbeOptions& options, const std::vector<std::string>& rank_hosts,
         std::vector<ProbeSample> known, Seconds limit, const Found& found)
      : measurement_(measurement),
        options_(options),
        rank_hosts_(rank_hosts),
        samples_(std::move(known)),
        limit_(limit),
        until_(measurement.elapsed() + limit),
        found_(found) {
    const std::vector<int> host = host_of_rank(rank_hosts);
    for (std::size_t rank = 0; rank < host.size(); ++rank) {
      if (static_cast<std::size_t>(host[rank]) == first_rank_.size())
        first_rank_.push_back(static_cast<int>(rank));
    }
  }

  SurveyResult run() {
    const auto hosts = static_cast<int>(first_rank_.size());
    result_.between =
        guess_link(measurement_, ranks_of({0, 1}), [this](const ProbeSample& sample) { keep(sample); });
    shape_ = shape_of(result_.between);
    one_by_one_ = hosts * (hosts - 1) / 2 * (one_latency() + kCommandTime) <= kOneByOneShare * limit_;
    const std::vector<int> rounds = rounds_to_run(hosts);
    for (const int round : rounds) {
      if (is_known(round)) continue;
      if (!may_go_on()) {
        result_.notes.push_back("some pairs of hosts were not measured: the budget is too small");
        break;
      }
      run_round(round);
    }
    confirm();
    choose_typical();
    return std::move(result_);
  }

 private:
  Pair ranks_of(const Pair& hosts) const {
    return {first_rank_[static_cast<std::size_t>(hosts.first)],
            first_rank_[static_cast<std::size_t>(hosts.second)]};
  }

  void keep(const ProbeSample& sample) {
    samples_.push_back(sample);
    found_(sample);
  }

  /// The numbers of the rounds to run: all of them up to most_pairs_hosts. On larger clusters a few rounds
  /// are drawn, in each of which every host still meets another one.
  std::vector<int> rounds_to_run(int hosts) {
    const auto all = static_cast<int>(tournament(hosts).size());
    std::vector<std::vector<Pair>> numbered;
    numbered.reserve(static_cast<std::size_t>(all));
    for (int round = 0; round < all; ++round) numbered.push_back({{round, round}});
    if (hosts > options_.most_pairs_hosts) {
      // Of each host 12 links: a quarter of them (choose_typical) is still three.
      constexpr int kSampledRounds = 12;
      numbered = sampled_rounds(numbered, kSampledRounds, options_.seed);
      result_.notes.push_back(std::to_string(numbered.size()) + " of " + std::to_string(all) +
                              " rounds of pairs were measured, drawn with seed " +
                              std::to_string(options_.seed));
    }
    std::vector<int> rounds;
    rounds.reserve(numbered.size());
    for (const auto& round : numbered) rounds.push_back(round.front().first);
    return rounds;
  }

  /// True if time and traffic suffice for another round and nobody asks to stop. A round sends two pairs of
  /// streams in each direction (Measurement::streams), so four are needed; the fifth is to spare for the
  /// small messages.
  bool may_go_on() {
    const auto traffic = measurement_.traffic_left();
    const Bytes needed{5 * shape_.size.count *
                       static_cast<std::uint64_t>(shape_.messages + shape_.in_flight)};
    return measurement_.elapsed() < until_ && (!traffic || *traffic >= needed) &&
           !measurement_.stop_requested();
  }

  bool has_stream(const Pair& ranks) const {
    return std::any_of(samples_.begin(), samples_.end(), [&](const ProbeSample& sample) {
      return sample.quantity.subject == Subject::kMessage && sample.quantity.in_flight == shape_.in_flight &&
             sample.quantity.source == ranks.first && sample.quantity.destination == ranks.second;
    });
  }

  bool is_known(int round) const {
    const auto rounds = tournament(static_cast<int>(first_rank_.size()));
    const auto& pairs = rounds[static_cast<std::size_t>(round)];
    return std::all_of(pairs.begin(), pairs.end(), [&](const Pair& pair) {
      const Pair ranks = ranks_of(pair);
      return has_stream(ranks) && has_stream({ranks.second, ranks.first});
    });
  }

  void run_round(int round) {
    measurement_.show("links between hosts, round " + std::to_string(round + 1));
    measure_latencies(round);
    for (const Pairing direction : {Pairing::kForward, Pairing::kReverse}) {
      keep_streams(
          measurement_.streams(direction, round, {}, shape_.size, shape_.in_flight, shape_.messages));
    }
  }

  int messages_one_by_one() const { return small_messages(result_.between.latency, kOneByOneTime); }
  Seconds one_latency() const { return messages_one_by_one() * 2 * result_.between.latency; }

  void measure_latencies(int round) {
    if (!one_by_one_) {
      keep_latencies(measurement_.latencies(Pairing::kForward, round, {}, kSmall,
                                            small_messages(result_.between.latency)));
      return;
    }
    const auto rounds = tournament(static_cast<int>(first_rank_.size()));
    for (const Pair& hosts : rounds[static_cast<std::size_t>(round)]) {
      keep_latencies(
          measurement_.latencies(Pairing::kNone, 0, ranks_of(hosts), kSmall, messages_one_by_one()));
    }
  }

  void keep_latencies(const std::vector<PairTimes>& times) {
    for (const PairTimes& pair : times) keep(sample_of(pair.pair, 1, kSmall, pair.seconds));
  }

  void keep_streams(const std::vector<PairTimes>& times) {
    for (const PairTimes& pair : times)
      keep(sample_of(pair.pair, shape_.in_flight, shape_.size, pair.seconds));
  }

  LinkReport report() const { return analyse_links(samples_, rank_hosts_); }

  /// Measures the links that a verdict rests on again, each alone, so that neither noise nor a shared network
  /// is taken for a slow link. Ends when that changes no verdict and no group any more.
  void confirm() {
    for (int i = 0; i < kConfirmations && measurement_.elapsed() < until_; ++i) {
      const LinkReport suspected = report();
      const std::size_t verdicts = suspected.verdicts.size();
      const std::size_t groups = suspected.groups.size();
      std::vector<Pair> doubtful;
      for (const Verdict& verdict : suspected.verdicts) add_doubtful(suspected, verdict, doubtful);
      if (groups > 1) doubtful.push_back(fastest_across(suspected));
      if (doubtful.empty()) return;
      for (const Pair& hosts : doubtful) {
        if (!may_go_on()) return;
        measure_alone(hosts);
      }
      const LinkReport now = report();
      if (now.verdicts.size() == verdicts && now.groups.size() == groups) return;
    }
  }

  /// Adds the links that decide a verdict: of a host its fastest link in either direction, since a slow host
  /// has no fast one; of a pair the pair's own link.
  static void add_doubtful(const LinkReport& suspected, const Verdict& verdict, std::vector<Pair>& doubtful) {
    if (verdict.kind == VerdictKind::kSlowPair) {
      doubtful.emplace_back(verdict.host, verdict.other);
      return;
    }
    const HostLink* out = nullptr;
    const HostLink* in = nullptr;
    for (const HostLink& link : suspected.links) {
      if (link.from == verdict.host && (out == nullptr || link.beta.value < out->beta.value)) out = &link;
      if (link.to == verdict.host && (in == nullptr || link.beta.value < in->beta.value)) in = &link;
    }
    if (out != nullptr) doubtful.emplace_back(out->from, out->to);
    if (in != nullptr) doubtful.emplace_back(in->from, in->to);
  }

  /// The fastest link between two groups: if it is as fast as those inside a group, the two are one group.
  static Pair fastest_across(const LinkReport& suspected) {
    std::vector<int> group(suspected.hosts.size());
    for (std::size_t g = 0; g < suspected.groups.size(); ++g) {
      for (const int host : suspected.groups[g]) group[static_cast<std::size_t>(host)] = static_cast<int>(g);
    }
    const HostLink* fastest = nullptr;
    for (const HostLink& link : suspected.links) {
      const bool across =
          group[static_cast<std::size_t>(link.from)] != group[static_cast<std::size_t>(link.to)];
      if (across && (fastest == nullptr || link.beta.value < fastest->beta.value)) fastest = &link;
    }
    return fastest == nullptr ? Pair{0, 1} : Pair{fastest->from, fastest->to};
  }

  void measure_alone(const Pair& hosts) {
    const Pair ranks = ranks_of(hosts);
    keep_latencies(
        measurement_.latencies(Pairing::kNone, 0, ranks, kSmall, small_messages(result_.between.latency)));
    keep_streams(
        measurement_.streams(Pairing::kNone, 0, ranks, shape_.size, shape_.in_flight, shape_.messages));
  }

  /// Chooses the pair that stands for all: each pair counts with its slower direction, and the pair at the
  /// lower quartile of the times per byte is taken. It is of the fast class if at least a quarter of the
  /// pairs are.
  void choose_typical() {
    std::map<Pair, HostLink> slower;
    for (const HostLink& link : report().links) {
      if (link.beta.value <= 0) continue;
      const Pair hosts{std::min(link.from, link.to), std::max(link.from, link.to)};
      HostLink& kept = slower[hosts];
      if (link.beta.value > kept.beta.value) kept = link;
    }
    if (slower.empty()) return;
    std::vector<std::pair<double, Pair>> order;
    order.reserve(slower.size());
    for (const auto& [hosts, link] : slower) order.emplace_back(link.beta.value, hosts);
    std::sort(order.begin(), order.end());
    const auto& [beta, hosts] = order[order.size() / 4];
    result_.typical = ranks_of(hosts);
    result_.between.beta.value = beta;
    if (slower[hosts].latency > Seconds{0}) result_.between.latency = slower[hosts].latency;
  }

  Measurement& measurement_;
  const ProbeOptions& options_;
  const std::vector<std::string>& rank_hosts_;
  std::vector<ProbeSample> samples_;
  Seconds limit_;
  Seconds until_;
  const Found& found_;
  std::vector<int> first_rank_;  ///< by host: its first rank, which measures
  StreamShape shape_;
  bool one_by_one_ = false;  ///< latencies of a round are measured one pair after the other
  SurveyResult result_;
};

}  // namespace

LinkGuess guess_link(Measurement& measurement, const Pair& pair, const Found& found) {
  measurement.show("a first link");
  const PairTimes small = measurement.latencies(Pairing::kNone, 0, pair, kSmall, kFewestSmall).front();
  found(sample_of(pair, 1, kSmall, small.seconds));
  // A guess within a factor of two is enough, and on a slow link as soon as it can be had.
  constexpr int kFewInFlight = 2, kFewMessages = 6;
  const Bytes size = kSmallestPart;
  const PairTimes stream =
      measurement.streams(Pairing::kNone, 0, pair, size, kFewInFlight, kFewMessages).front();
  std::vector<double> latencies = small.seconds;
  return {Seconds{median_interval(latencies).median},
          SecondsPerByte{stream.seconds.front() / static_cast<double>(size.count)}};
}

SurveyResult survey_links(Measurement& measurement, const ProbeOptions& options,
                          const std::vector<std::string>& rank_hosts, std::vector<ProbeSample> known,
                          Seconds limit, const Found& found) {
  return Survey(measurement, options, rank_hosts, std::move(known), limit, found).run();
}

}  // namespace commtune::probes
