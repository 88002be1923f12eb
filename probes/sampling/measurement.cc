#include "probes/sampling/measurement.h"

#include <algorithm>
#include <limits>

#include "probes/analysis/links.h"
#include "probes/load/compute_step.h"
#include "probes/protocol/timing.h"
#include "probes/sampling/stream_shape.h"

namespace commtune::probes {

namespace {

constexpr Seconds kBetweenShows{0.2};  // five times a second, as fast as a person reads
// Repetitions in one command: round trips of 1 ms take 0.2 s, in which none can be stopped.
constexpr int kMostInOne = 200;

std::string label(const Quantity& quantity, Bytes size) {
  return describe(quantity) + ", " + format_size(size);
}

/// By repetition, of a quantity that is_back_to_back().
std::vector<double> times_of(const Quantity& quantity, const std::vector<FollowerReport>& reports) {
  if (quantity.subject == Subject::kOperation) return in_a_row(reports);
  const FollowerReport& source = reports[static_cast<std::size_t>(quantity.source)];
  return quantity.subject == Subject::kMessage ? half_round_trips(source) : durations(source);
}

double seconds_of(const Quantity& quantity, const std::vector<FollowerReport>& reports) {
  if (quantity.subject != Subject::kMessage) return alone_seconds(reports);
  return one_way_seconds(reports[static_cast<std::size_t>(quantity.source)],
                         reports[static_cast<std::size_t>(quantity.destination)]);
}

}  // namespace

Measurement::Measurement(Coordinator& coordinator, std::vector<std::string> rank_hosts,
                         const ProbeOptions& options, Seconds budget, EventSink& sink)
    : coordinator_(coordinator),
      rank_hosts_(std::move(rank_hosts)),
      options_(options),
      budget_(budget),
      sink_(sink),
      began_(Clock::now()) {
  const std::vector<int> host = host_of_rank(rank_hosts_);
  for (std::size_t rank = 0; rank < host.size(); ++rank) {
    if (static_cast<std::size_t>(host[rank]) == first_rank_.size())
      first_rank_.push_back(static_cast<int>(rank));
  }
}

Seconds Measurement::elapsed() const { return Clock::now() - began_; }

std::optional<Bytes> Measurement::traffic_left() const {
  if (options_.traffic == Bytes{0}) return std::nullopt;
  return options_.traffic > traffic_ ? options_.traffic - traffic_ : Bytes{0};
}

bool Measurement::stop_requested() {
  stopped_ = stopped_ || sink_.stop_requested();
  return stopped_;
}

void Measurement::show(const std::string& what) {
  const Deadline time = Clock::now();
  if (shown_ != Deadline{} && time - shown_ < kBetweenShows) return;
  tell(what);
}

void Measurement::tell(const std::string& what) {
  shown_ = Clock::now();
  const double fraction = std::clamp(elapsed() / budget_, 0.0, 1.0);
  sink_.on_progress({what, fraction, std::max(left(), Seconds{0})});
}

// --- visits ---------------------------------------------------------------------------------------------

Command Measurement::command_for(const Visit& visit) const {
  Command command;
  command.action = Action::kMeasure;
  command.quantity = visit.quantity;
  command.bytes = visit.size.count;
  command.messages = visit.messages;
  if (visit.quantity.subject == Subject::kOperation) command.pace = pace_;
  return command;
}

Seconds Measurement::warm_up(const Command& command, const Visit& visit, const std::string& what) {
  Command smaller = command;
  smaller.bytes = std::min(command.bytes, kWarmUpBytes.count);
  smaller.messages = command.quantity.in_flight;
  Seconds fastest{std::numeric_limits<double>::infinity()};
  for (int i = 0; i < options_.warmup; ++i) {
    const Seconds began = elapsed();
    coordinator_.perform(smaller, visit.expected, what);
    fastest = std::min(fastest, elapsed() - began);
  }
  return options_.warmup > 0 ? fastest / smaller.messages : Seconds{0};
}

std::vector<double> Measurement::in_one_command(Command command, const Visit& visit,
                                                const std::string& what) {
  const bool operation = visit.quantity.subject == Subject::kOperation;
  const Seconds seen = operation && visit.first ? warm_up(command, visit, what) : Seconds{0};
  const int dropped = !operation && visit.first ? options_.warmup : 0;
  command.messages = std::min(visit.repetitions + dropped, kMostInOne);
  if (seen > Seconds{0}) command.messages = row_at_most(command.messages, seen);
  std::vector<double> times = times_of(visit.quantity, coordinator_.perform(command, visit.expected, what));
  times.erase(times.begin(), times.begin() + std::min<std::ptrdiff_t>(dropped, std::ssize(times) - 1));
  return times;
}

std::vector<double> Measurement::streamed(Command command, const Visit& visit, const std::string& what) {
  const Seconds seen = visit.first ? warm_up(command, visit, what) : Seconds{0};
  if (seen > Seconds{0})
    command.messages = streamed_at_most(command.messages, visit.quantity.in_flight, seen);
  const Seconds expected = std::max(visit.expected, seen * command.messages);
  const auto once_more = [&](const Command& one) {
    return seconds_of(visit.quantity, coordinator_.perform(one, expected, what));
  };
  Command shorter = command;
  shorter.messages = visit.quantity.in_flight;
  std::vector<double> wholes, parts;
  const Seconds began = elapsed();
  for (int i = 0; i < visit.repetitions; ++i) {
    wholes.push_back(once_more(command));
    parts.push_back(once_more(shorter));
    show(what);
    // As long as expected, or as those before took: the first guess of a stream may be far too short.
    const Seconds once = std::max(visit.expected / (visit.repetitions + 1), (elapsed() - began) / (i + 1));
    if (stop_requested() || left() < once) break;
  }
  // Shorter streams differ by noise alone, which would count twice if each were taken from its longer one.
  const double part = median_interval(parts).median;
  for (double& whole : wholes) whole = steady_seconds(part, shorter.messages, whole, command.messages);
  return wholes;
}

std::vector<double> Measurement::measure(const Visit& visit) {
  const std::string what = label(visit.quantity, visit.size);
  show(what);
  const Command command = command_for(visit);
  traffic_ += visit.sends;
  return is_back_to_back(visit.quantity) ? in_one_command(command, visit, what)
                                         : streamed(command, visit, what);
}

// --- pairs ----------------------------------------------------------------------------------------------

std::vector<Pair> Measurement::pairs_of(Pairing pairing, int round, const Pair& pair) const {
  if (pairing == Pairing::kNone) return {pair};
  std::vector<Pair> pairs;
  const auto rounds = tournament(static_cast<int>(first_rank_.size()));
  for (const auto& [first, second] : rounds[static_cast<std::size_t>(round)]) {
    const int a = first_rank_[static_cast<std::size_t>(first)];
    const int b = first_rank_[static_cast<std::size_t>(second)];
    pairs.push_back(pairing == Pairing::kForward ? Pair{a, b} : Pair{b, a});
  }
  return pairs;
}

std::vector<PairTimes> Measurement::latencies(Pairing pairing, int round, const Pair& pair, Bytes size,
                                              int count) {
  Command command;
  command.action = Action::kMeasure;
  command.pairing = pairing;
  command.round = round;
  command.quantity.source = pair.first;
  command.quantity.destination = pair.second;
  command.bytes = size.count;
  command.messages = count + 1;
  traffic_ += Bytes{size.count * static_cast<std::uint64_t>(command.messages)};
  const std::vector<FollowerReport> reports =
      coordinator_.perform(command, Seconds{0}, "latencies between hosts");
  std::vector<PairTimes> result;
  for (const Pair& ends : pairs_of(pairing, round, pair)) {
    std::vector<double> times = half_round_trips(reports[static_cast<std::size_t>(ends.first)]);
    times.erase(times.begin());  // the warm-up
    result.push_back({ends, std::move(times)});
  }
  return result;
}

namespace {

// The first of two streams opens the connection's window; the faster one counts.
constexpr int kPairStreams = 2;

double pair_seconds(const std::vector<FollowerReport>& reports, const Pair& pair) {
  return one_way_seconds(reports[static_cast<std::size_t>(pair.first)],
                         reports[static_cast<std::size_t>(pair.second)]);
}

}  // namespace

std::vector<PairTimes> Measurement::streams(Pairing pairing, int round, const Pair& pair, Bytes size,
                                            int in_flight, int messages) {
  Command command;
  command.action = Action::kMeasure;
  command.pairing = pairing;
  command.round = round;
  command.quantity.source = pair.first;
  command.quantity.destination = pair.second;
  command.quantity.in_flight = in_flight;
  command.bytes = size.count;
  command.messages = messages;
  traffic_ += Bytes{size.count * static_cast<std::uint64_t>(messages + in_flight) * kPairStreams};
  const std::vector<Pair> pairs = pairs_of(pairing, round, pair);
  std::vector<PairTimes> longer(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) longer[i].pair = pairs[i];
  std::vector<PairTimes> shorter = longer;
  for (int i = 0; i < kPairStreams; ++i) {
    for (std::vector<PairTimes>* streams : {&longer, &shorter}) {
      command.messages = streams == &longer ? messages : in_flight;
      const std::vector<FollowerReport> reports =
          coordinator_.perform(command, Seconds{0}, "streams between hosts");
      for (PairTimes& times : *streams) times.seconds.push_back(pair_seconds(reports, times.pair));
    }
  }
  for (std::size_t i = 0; i < longer.size(); ++i) {
    const auto least = [](const PairTimes& times) { return *std::ranges::min_element(times.seconds); };
    longer[i].seconds = {steady_seconds(least(shorter[i]), in_flight, least(longer[i]), messages)};
  }
  return longer;
}

// --- servers ---------------------------------------------------------------------------------------------

namespace {

/// How often a message waits: there and back through servers, at each step of a ring.
int rounds_of(const Quantity& quantity) {
  return goes_through_servers(quantity.road) ? 2 : 2 * (quantity.workers - 1);
}

Bytes head_of_line_traffic(Bytes size, int ahead) {
  return Bytes{2 * size.count * static_cast<std::uint64_t>(ahead + 2)};
}

}  // namespace

double Measurement::head_of_line(const Quantity& quantity, Bytes size, Seconds expected) {
  Command behind;
  behind.action = Action::kMeasure;
  behind.quantity = quantity;
  behind.bytes = size.count;
  behind.messages = quantity.in_flight + 1;
  behind.pace = pace_;
  Command alone = behind;
  alone.quantity.subject = Subject::kOperation;
  alone.quantity.in_flight = alone.messages = 1;
  const std::string what = label(quantity, size);
  show(what);
  traffic_ += head_of_line_traffic(size, quantity.in_flight);
  const double without = alone_seconds(coordinator_.perform(alone, expected, what));
  const double with = alone_seconds(coordinator_.perform(behind, expected, what));
  return std::max(0.0, (with - without) / rounds_of(quantity));
}

bool Measurement::may_measure_head_of_line(Bytes size, int ahead) const {
  const std::optional<Bytes> left = traffic_left();
  return !left || head_of_line_traffic(size, ahead) <= *left;
}

// --- steps ----------------------------------------------------------------------------------------------

namespace {

std::vector<std::vector<double>> durations_by_rank(const std::vector<FollowerReport>& reports) {
  std::vector<std::vector<double>> result;
  result.reserve(reports.size());
  for (const FollowerReport& report : reports) result.push_back(durations(report));
  return result;
}

}  // namespace

Quantity Traffic::quantity(bool computing) const {
  Quantity quantity;
  quantity.subject = Subject::kTraffic;
  quantity.road = road;
  quantity.operation = Operation::kAllReduce;
  quantity.workers = workers;
  quantity.in_flight = in_flight;
  quantity.computing = computing;
  return quantity;
}

Command Measurement::command_of(const Traffic& traffic, StepKind steps) const {
  Command command;
  command.action = Action::kMeasure;
  command.steps = steps;
  command.sm_share = options_.sm_share.value_or(1);
  command.quantity = traffic.quantity(true);
  command.bytes = traffic.size.count;
  command.messages = traffic.messages;
  return command;
}

std::vector<std::vector<double>> Measurement::steps(StepKind kind, int steps) {
  Command command;
  command.action = Action::kMeasure;
  command.steps = kind;
  command.sm_share = options_.sm_share.value_or(1);
  command.quantity.subject = Subject::kStep;
  command.quantity.in_flight = 0;
  command.messages = steps;
  return durations_by_rank(coordinator_.perform(command, steps * Seconds{kStepLength}, "compute steps"));
}

std::vector<std::vector<double>> Measurement::busy_steps(StepKind kind, const Traffic& traffic) {
  Command command = command_of(traffic, kind);
  command.quantity.subject = Subject::kStep;
  command.quantity.computing = false;
  traffic_ += traffic.sends();
  return durations_by_rank(coordinator_.perform(command, traffic.expected, "compute steps while bytes move"));
}

double Measurement::message_seconds(const Traffic& traffic, std::optional<StepKind> beside) {
  Command command = command_of(traffic, beside.value_or(StepKind::kTimeline));
  command.quantity.computing = beside.has_value();
  command.pace = pace_;
  const std::string what = label(command.quantity, traffic.size);
  show(what);
  traffic_ += traffic.sends();
  return alone_seconds(coordinator_.perform(command, traffic.expected, what)) / traffic.messages;
}

}  // namespace commtune::probes
