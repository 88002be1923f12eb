#include "probes/probe.h"

#include <algorithm>

#include "executor/memory/cuda/gpu_memory.h"
#include "executor/memory/host_memory.h"
#include "executor/transport/rank_gpu.h"
#include "perfmodel/base/error.h"
#include "perfmodel/cost/doubtful_fits.h"
#include "perfmodel/cost/topology.h"
#include "probes/host/cluster_facts.h"
#include "probes/host/host_lock.h"
#include "probes/protocol/coordinator.h"
#include "probes/sampling/head_of_line.h"
#include "probes/sampling/interim_looks.h"
#include "probes/sampling/link_survey.h"
#include "probes/sampling/measurement.h"
#include "probes/sampling/nccl_survey.h"
#include "probes/sampling/step_survey.h"
#include "probes/sampling/targets.h"

namespace commtune::probes {

namespace {

// Of the budget, for the pairs of hosts at most: roads, of which plans are made, keep two thirds.
constexpr double kSurveyShare = 0.35;
// Kept at the end for what is made of the samples: the fits of links (those of a probe of 4 hosts took 0.15
// s) and those of each target. With less a probe outlasts its budget; what is not needed of it is not
// measured in.
constexpr Seconds kFitTime{0.15};
constexpr Seconds kFitTimePerTarget{0.002};
// Round trips, of which the fastest tells a clock's lead: by then one of them is as good as undisturbed. More
// would delay every probe's beginning.
constexpr int kClockRounds = 8;

// On the wire: as much as a fused message of a plan, more than a core's own caches hold; 12 times of each
// type and kind take some 30 ms in all, and a budget of which that is a larger part goes without.
constexpr Bytes kCastSize{1 << 20};
constexpr int kMemoryRepetitions = 12;
constexpr Seconds kCastsTime{0.05};
constexpr double kCastsShare = 0.02;
// So long that what a copy's call takes is a hundredth of it: 4 MiB take 150 us at 28 GB/s.
constexpr Bytes kHostCopySize{4 << 20};
// What is urgent overtakes others of this size, at servers whose cards they keep busy.
constexpr Bytes kHeadOfLineSize{256 << 10};
// Of the time that is left, for each road; its first try may take more, since only that tells how long one
// takes. Without a limit, on a cluster with a slow host, streams took a quarter of the probe, and three
// samples of each operation were left.
constexpr double kHeadOfLineShare = 0.06;
constexpr double kFirstHeadOfLineShare = 0.15;
// For NCCL's algorithms and protocols, of the time that is left; each needs communicators of its own, which
// take a second or two on GPUs.
constexpr double kNcclShare = 0.4;
// Lines that a person still reads: of what is missing, and of fits not to be trusted.
constexpr std::size_t kMissingLines = 8;
constexpr std::size_t kDoubtfulNamed = 4;

Hello greeting_of(const Transport& transport, const ProbeOptions& options, std::optional<HostLock>& lock) {
  const Peers& peers = transport.peers();
  const auto me = static_cast<std::size_t>(peers.rank);
  Hello hello;
  hello.facts = own_facts(peers, options.device);
  const bool first_here = !hello.facts.empty();
  hello.facts.merge(end_facts(transport));
  if (first_here && options.exclusive) {
    lock = HostLock::take();
    if (!lock) {
      hello.conflict = HostLock::conflict(peers.hosts[me]);
    }
  }
  return hello;
}

ClusterFacts facts_of(const Transport& transport, const std::vector<Hello>& hellos,
                      const ProbeOptions& options) {
  ClusterFacts facts;
  facts.name = options.cluster_name;
  facts.transport = transport.name();
  facts.rank_hosts = transport.peers().hosts;
  std::vector<Facts> said;
  said.reserve(hellos.size());
  for (const Hello& hello : hellos) said.push_back(hello.facts);
  facts.facts = joined_facts(said);
  facts.traits = with_chunk(transport.traits(), options.chunk);
  facts.device = options.device;
  if (options.chunk.count != 0) facts.facts["setting.chunk"] = std::to_string(options.chunk.count);
  for (const auto& [key, value] : options.settings) facts.facts["setting." + key] = value;
  return facts;
}

std::optional<Pair> pair_within_host(const std::vector<std::string>& rank_hosts) {
  for (std::size_t a = 0; a < rank_hosts.size(); ++a) {
    for (std::size_t b = a + 1; b < rank_hosts.size(); ++b) {
      if (rank_hosts[a] == rank_hosts[b]) return Pair{static_cast<int>(a), static_cast<int>(b)};
    }
  }
  return std::nullopt;
}

/// A rank may hear of a command when others have begun it: all of a stream may come early. One lasts 20 ms
/// (stream_shape.h), in which a link of 400 Gb/s carries 1 GB.
MessageLimits message_limits(const ProbeOptions& options) {
  constexpr Bytes kLongestStream = 1024_MiB;
  MessageLimits limits;
  limits.longest = std::max({limits.longest, options.last, kLargestSurveyed});
  limits.early = kLongestStream + limits.longest;
  return limits;
}

/// hosts  by rank
Seconds budget_of(const ProbeOptions& options, const std::vector<std::string>& hosts) {
  return options.budget.value_or(
      default_budget(static_cast<int>(distinct_hosts(hosts).size()), static_cast<int>(hosts.size())));
}

/// Rank 0's probe from the first greeting to the last fit: measure(), then result().
class Session {
 public:
  Session(Transport& transport, Coordinator& coordinator, const ProbeOptions& options, EventSink& sink,
          Advisor* advisor)
      : options_(options),
        sink_(sink),
        advisor_(advisor),
        coordinator_(coordinator),
        hosts_(distinct_hosts(transport.peers().hosts).size()),
        budget_(budget_of(options, transport.peers().hosts)),
        measurement_(coordinator, transport.peers().hosts, options, budget_, sink) {}

  /// With all ranks.
  void measure(ClusterFacts facts) {
    facts_ = std::move(facts);
    samples_ = options_.already;
    sink_.on_facts(facts_);
    for (ProbeSample& sample : sink_.earlier(facts_)) samples_.push_back(std::move(sample));
    if (ranks() > 1) {
      coordinator_.compare_clocks(kClockRounds);
      const Seconds began = measurement_.elapsed();
      survey();
      split_.survey = measurement_.elapsed() - began;
      shape_.surveyed.hosts = paced_hosts(latest(samples_), facts_.rank_hosts);
      offer_ = offered();
    }
    measure_steps();
    measure_casts();
    measure_gpu();
    if (ranks() > 1) {
      measure_heads_of_line();
      measure_nccl();
    }
    run_sampling_plan();
  }

  /// Of what was measured; needs no other rank, and is the longest that rank 0 is busy by itself.
  ProbeResult result() {
    measurement_.tell("the fits of what was measured");
    ProbeResult result;
    result.samples = latest(samples_);
    result.cluster = fit_cluster(result.samples, facts_);
    result.links = analyse_links(result.samples, facts_.rank_hosts);
    note_doubtful(result.cluster);
    result.end = end_;
    result.would_measure = std::move(missing_);
    result.notes = std::move(notes_);
    result.elapsed = measurement_.elapsed();
    split_.rest = result.elapsed - split_.survey - split_.links - split_.first_sizes - split_.refinement -
                  split_.planning;
    result.split = split_;
    result.traffic = measurement_.traffic();
    return result;
  }

 private:
  int ranks() const { return static_cast<int>(facts_.rank_hosts.size()); }

  void keep(const ProbeSample& sample) {
    samples_.push_back(sample);
    sink_.on_sample(sample);
  }

  void survey() {
    shape_.rank_hosts = facts_.rank_hosts;
    shape_.within = pair_within_host(facts_.rank_hosts);
    const Found found = [this](const ProbeSample& sample) { keep(sample); };
    if (shape_.within) shape_.within_guess = guess_link(measurement_, *shape_.within, found);
    if (hosts_ < 2) return;
    SurveyResult result =
        survey_links(measurement_, options_, facts_.rank_hosts, samples_, kSurveyShare * budget_, found);
    shape_.between = result.typical;
    shape_.between_guess = result.between;
    if (result.between.beta.value > 0) measurement_.set_pace(1 / result.between.beta.value);
    notes_.insert(notes_.end(), result.notes.begin(), result.notes.end());
  }

  /// Compute steps, alone for the jitter, then while bytes move; on GPUs by the library's road, if there is
  /// one.
  void measure_steps() {
    const Found found = [this](const ProbeSample& sample) { keep(sample); };
    const StepKind steps = steps_of(options_);
    if (measurement_.stop_requested()) return;
    survey_jitter(measurement_, steps, samples_, found);
    if (ranks() < 2) return;
    const bool by_library = steps == StepKind::kGpu && sums_by_library();
    const Road road = AllReduce{by_library ? Collective::kLibrary : Collective::kRing};
    const LinkGuess& guess = shape_.between ? shape_.between_guess : shape_.within_guess;
    const std::vector<std::string> notes =
        survey_slow_downs(measurement_, steps, road, ranks(), guess.beta, samples_, found);
    notes_.insert(notes_.end(), notes.begin(), notes.end());
  }

  /// What plans that cast need to know: of one size each, since they are asked for by name and the others
  /// must not wait for them.
  void measure_casts() {
    if (measurement_.left() * kCastsShare < kCastsTime) {
      notes_.emplace_back("what casts cost was not measured: too little time is allowed");
      return;
    }
    for (const WireFormat wire : kCasts) {
      for (const Subject subject : {Subject::kCast, Subject::kCastSum})
        measure_on_memory(subject, wire, kCastSize);
    }
  }

  /// Launches, and copies between the host and a GPU.
  void measure_gpu() {
    if (options_.device != DeviceKind::kCuda) return;
    measure_on_memory(Subject::kLaunch, WireFormat::kAsIs, Bytes{sizeof(float)});
    for (const Subject subject : {Subject::kUpload, Subject::kDownload})
      measure_on_memory(subject, WireFormat::kAsIs, kHostCopySize);
  }

  void measure_on_memory(Subject subject, WireFormat wire, Bytes size) {
    if (measurement_.stop_requested()) return;
    Visit visit;
    visit.quantity.subject = subject;
    visit.quantity.wire = wire;
    visit.quantity.source = 0;
    const bool known = std::ranges::any_of(
        samples_, [&](const ProbeSample& sample) { return sample.quantity == visit.quantity; });
    if (known) return;
    visit.size = std::min(options_.last, size);
    visit.repetitions = kMemoryRepetitions;
    visit.expected = kCastsTime / 4;
    const std::vector<double> seconds = measurement_.measure(visit);
    std::vector<double> sorted = seconds;
    const MedianInterval interval = median_interval(sorted);
    keep({visit.quantity,
          {visit.size, Seconds{interval.median}, Seconds{(interval.high - interval.low) / 2},
           static_cast<int>(seconds.size())},
          seconds});
  }

  /// Where sockets hold what nothing urgent overtakes: at a server's busy card, on the first road over
  /// servers that is offered, and on the one connection over which a ring sends.
  std::vector<Quantity> heads_of_line() const {
    std::vector<Quantity> all;
    Quantity quantity;
    quantity.subject = Subject::kHeadOfLine;
    quantity.workers = ranks();
    const auto servers = std::ranges::find_if(offer_.servers, [](const ParameterServer& each) {
      return each.placement == Placement::kColocated && each.assignment == Assignment::kEven;
    });
    if (servers != offer_.servers.end()) {
      quantity.road = *servers;
      quantity.operation = Operation::kPushPull;
      all.push_back(quantity);
    }
    quantity.road = AllReduce{Collective::kRing};
    quantity.operation = Operation::kAllReduce;
    all.push_back(quantity);
    return all;
  }

  bool knows_head_of_line(const Road& road) const {
    return std::ranges::any_of(samples_, [&](const ProbeSample& sample) {
      return sample.quantity.subject == Subject::kHeadOfLine && sample.quantity.road == road;
    });
  }

  /// How long what is urgent waits behind messages that are under way.
  void measure_heads_of_line() {
    if (!shape_.between) return;
    for (const Quantity& quantity : heads_of_line()) {
      if (measurement_.stop_requested()) return;
      if (!knows_head_of_line(quantity.road)) measure_head_of_line(quantity);
    }
  }

  void measure_head_of_line(Quantity quantity) {
    const auto expected = [&](int ahead) {
      return 2 * (shape_.between_guess.beta * kHeadOfLineSize) * (ahead + 2);
    };
    // A ring has a part of each message on a connection at a time.
    const bool servers = goes_through_servers(quantity.road);
    const int fewest = servers ? kFewestAhead : std::clamp(ranks(), kFewestAhead, kMostAhead);
    const bool slow = expected(fewest) > kFirstHeadOfLineShare * measurement_.left();
    if (slow || !measurement_.may_measure_head_of_line(kHeadOfLineSize, fewest)) {
      notes_.push_back("how long what is urgent waits (" + describe(quantity.road) +
                       ") was not measured: too little " + (slow ? "time" : "traffic") + " is allowed");
      return;
    }
    const auto measure = [&](int ahead) -> std::optional<HeadOfLineTrial> {
      if (measurement_.stop_requested() || !measurement_.may_measure_head_of_line(kHeadOfLineSize, ahead))
        return std::nullopt;
      quantity.in_flight = ahead;
      const Seconds began = measurement_.elapsed();
      const double wait = measurement_.head_of_line(quantity, kHeadOfLineSize, expected(ahead));
      return HeadOfLineTrial{wait, measurement_.elapsed() - began};
    };
    std::optional<HeadOfLineWaits> found =
        find_head_of_line(measure, fewest, kHeadOfLineShare * measurement_.left());
    if (!found) return;
    const MedianInterval interval = median_interval(found->waits);
    quantity.in_flight = found->ahead;
    const Seconds half_width{(interval.high - interval.low) / 2};
    keep({quantity,
          {kHeadOfLineSize, Seconds{interval.median}, half_width, static_cast<int>(found->waits.size())},
          found->waits});
  }

  /// Why no library of collectives sums here, found out by calling it; nullopt: one does.
  std::optional<std::string> why_no_library() {
    Command command;
    command.action = Action::kMeasure;
    command.quantity.subject = Subject::kOperation;
    command.quantity.road = AllReduce{Collective::kLibrary};
    command.quantity.operation = Operation::kAllReduce;
    command.quantity.workers = ranks();
    command.bytes = sizeof(float);
    try {
      coordinator_.perform(command, Seconds{0}, "a library's all-reduce");
      return std::nullopt;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      return error.what();
    }
  }

  Offer offered() {
    const Topology place = topology_of(shape_.surveyed, ranks());
    Offer result = offer(options_, facts_.rank_hosts, spared_workers(place));
    const auto library = std::find(result.algorithms.begin(), result.algorithms.end(), Collective::kLibrary);
    if (library == result.algorithms.end()) return result;
    if (const auto why = why_no_library()) {
      result.algorithms.erase(library);
      notes_.push_back("not measured: " + *why);
    }
    return result;
  }

  bool sums_by_library() const {
    return std::ranges::find(offer_.algorithms, Collective::kLibrary) != offer_.algorithms.end();
  }

  void measure_nccl() {
    if (options_.device != DeviceKind::kCuda || !sums_by_library()) return;
    const Found found = [this](const ProbeSample& sample) { keep(sample); };
    const std::vector<std::string> notes = survey_nccl(measurement_, options_, facts_.rank_hosts, samples_,
                                                       kNcclShare * measurement_.left(), found);
    notes_.insert(notes_.end(), notes.begin(), notes.end());
  }

  std::vector<Target> targets() {
    std::vector<Target> result;
    if (ranks() > 1) result = choose_targets(options_, shape_, offer_);
    for (const Subject subject : {Subject::kSum, Subject::kCopy}) result.push_back(memory_target(subject));
    return result;
  }

  Target memory_target(Subject subject) const {
    // Larger than a rank's share of any last-level cache; beyond, a byte costs the same.
    constexpr Bytes kLargest{16 << 20};
    Target target;
    target.quantity.subject = subject;
    target.quantity.source = 0;
    target.largest = std::min(options_.last, kLargest);
    target.sent = 0;
    target.weight = 0.5;  // little beside links: it is a small part of what messages cost
    // Guesses, which the first size replaces: a call, and 3 GB/s.
    target.startup = Seconds{1e-6};
    target.beta = SecondsPerByte{3e-10};
    return target;
  }

  SamplingPlanOptions sampling_plan_options() const {
    SamplingPlanOptions result;
    result.first = options_.first;
    result.last = options_.last;
    result.factor = options_.factor;
    result.iterations = options_.iterations;
    result.max_iterations = options_.max_iterations;
    result.width = options_.width;
    result.budget = budget_;
    result.chunk = facts_.traits.chunk;
    result.overhead = Seconds{2 * Seconds{coordinator_.clocks().slowest_round_trip()}} + Seconds{2e-4};
    return result;
  }

  void run_sampling_plan() {
    const std::vector<Target> all = targets();
    const Seconds reserve = kFitTime + kFitTimePerTarget * static_cast<double>(all.size());
    SamplingPlan sampling_plan(all, sampling_plan_options(), samples_);
    InterimLooks looks(budget_);
    while (true) {
      if (measurement_.stop_requested()) {
        end_ = ProbeEnd::kStopped;
        break;
      }
      const std::optional<Visit> visit =
          sampling_plan.next(measurement_.left() - reserve, measurement_.traffic_left());
      if (!visit) {
        end_ = sampling_plan.complete() ? ProbeEnd::kComplete : ProbeEnd::kBudget;
        break;
      }
      if (ranks() > 1 && advisor_ != nullptr && looks.due(*visit, measurement_.left() - reserve)) {
        if (look(looks, sampling_plan)) {
          end_ = ProbeEnd::kSettled;
          break;
        }
        continue;  // something else may be worth more now
      }
      const Seconds began = measurement_.elapsed();
      keep(sampling_plan.record(*visit, measurement_.measure(*visit)));
      account(*visit, measurement_.elapsed() - began);
    }
    missing_ = sampling_plan.missing(kMissingLines);
    note_looks(looks);
  }

  /// Plans on what was measured so far, and weighs by what that needs. True if the choice is settled.
  bool look(InterimLooks& looks, SamplingPlan& sampling_plan) {
    const Seconds began = measurement_.elapsed();
    measurement_.show("planning on what was measured so far");
    FitOptions quick;
    quick.bootstrap = 0;  // what noise leaves open is asked for at the end
    const Cluster known = fit_cluster(samples_, facts_, quick);
    const Seconds fitting = measurement_.elapsed() - began;
    const Advice advice = advisor_->advise(known, std::max(looks.limit() - fitting, Seconds{0}));
    add_most_needed(advice, sampling_plan);
    sampling_plan.weigh(advice.needs);
    const Seconds took = measurement_.elapsed() - began;
    looks.add_time(took);
    split_.planning += took;
    return looks.is_settled_by(advice);
  }

  /// Of roads that are priced by formulas alone, the one of most value is measured itself, unless somebody
  /// said which roads to measure.
  void add_most_needed(const Advice& advice, SamplingPlan& sampling_plan) {
    const RoadNeed* need = most_needed(advice);
    const bool named = !options_.servers.empty() || !options_.algorithms.empty();
    if (named || need == nullptr || sampling_plan.has_target(*need)) return;
    sampling_plan.add(road_targets(options_, shape_, need->road, need->workers), samples_);
    notes_.push_back(describe(need->road) + ": measured, since plans may need it");
  }

  void note_looks(const InterimLooks& looks) {
    if (looks.looks() == 0 && advisor_ != nullptr && ranks() > 1 && end_ == ProbeEnd::kBudget)
      notes_.emplace_back("no road was refined by what plans need: their first sizes took the time");
    if (looks.choice().empty()) return;
    std::string note = "roads were refined by what plans need, at " + std::to_string(looks.looks()) +
                       (looks.looks() == 1 ? " look" : " looks") + "; the last one chose " + looks.choice();
    if (end_ == ProbeEnd::kSettled) {
      note += ", which is certain: " + format_time(measurement_.left()) + " of " + format_time(budget_) +
              " were not needed";
    }
    notes_.push_back(std::move(note));
  }

  /// What is of neither links nor roads counts as the rest.
  void account(const Visit& visit, Seconds took) {
    const Subject subject = visit.quantity.subject;
    if (subject == Subject::kMessage || subject == Subject::kExchange) {
      split_.links += took;
    } else if (subject == Subject::kOperation) {
      (visit.of_first_sizes ? split_.first_sizes : split_.refinement) += took;
    }
  }

  void note_doubtful(const Cluster& cluster) {
    const std::vector<std::string> doubtful = doubtful_fits(cluster);
    if (doubtful.empty()) return;
    std::string note = "do not trust predictions that rest on these fits (a larger budget may mend them): ";
    for (std::size_t i = 0; i < std::min(doubtful.size(), kDoubtfulNamed); ++i) {
      note += (i == 0 ? "" : "; ") + doubtful[i];
    }
    if (doubtful.size() > kDoubtfulNamed) {
      note += "; and " + std::to_string(doubtful.size() - kDoubtfulNamed) + " more";
    }
    notes_.push_back(std::move(note));
  }

  const ProbeOptions& options_;
  EventSink& sink_;
  Advisor* advisor_;
  Coordinator& coordinator_;
  std::size_t hosts_;
  Seconds budget_;
  Measurement measurement_;
  ClusterFacts facts_;
  ClusterShape shape_;
  Offer offer_;
  std::vector<ProbeSample> samples_;
  std::vector<std::string> notes_, missing_;
  ProbeEnd end_ = ProbeEnd::kBudget;
  BudgetSplit split_;
};

}  // namespace

ProbeResult probe(Transport& transport, const ProbeOptions& options, EventSink& sink, Advisor* advisor) {
  options.check();
  transport.limit_messages(message_limits(options));
  std::unique_ptr<Memory> gpu;
  if (options.device == DeviceKind::kCuda) gpu = make_gpu_memory(gpu_of_rank(transport.peers()));
  Communicator communicator(transport, gpu ? *gpu : host_memory());
  const Patience patience{options.timeout, Seconds{std::min(2.0, options.timeout.count())}};
  std::optional<HostLock> lock;
  const Hello own = greeting_of(transport, options, lock);
  if (communicator.rank() != 0) {
    follow(communicator, own, patience, options.chunk);
    return {};
  }
  Coordinator coordinator(communicator, patience, options.chunk);
  Session session(transport, coordinator, options, sink, advisor);
  try {
    const std::vector<Hello> hellos = coordinator.greetings(own);
    for (const Hello& hello : hellos) {
      if (!hello.conflict.empty()) throw Error(ErrorCode::kConflict, hello.conflict);
    }
    session.measure(facts_of(transport, hellos, options));
  } catch (const std::exception& error) {
    coordinator.stop(std::string("rank 0 ended the probe: ") + error.what());
    throw;
  }
  // Before the fits: on a slow host they may take longer than ranks wait for a command.
  coordinator.stop({});
  return session.result();
}

}  // namespace commtune::probes
