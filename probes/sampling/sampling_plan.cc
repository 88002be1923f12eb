#include "probes/sampling/sampling_plan.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "probes/analysis/enough_sizes.h"
#include "probes/sampling/log_sizes.h"

namespace commtune::probes {

namespace {

double octaves(Bytes a, Bytes b) {
  return std::abs(std::log2(static_cast<double>(a.count) / static_cast<double>(b.count)));
}

/// Times within a factor of four.
int time_class(double seconds) {
  constexpr double kLeast = 1e-9;  // seconds: what clocks tell apart
  return static_cast<int>(std::floor(std::log2(std::max(seconds, kLeast)) / 2));
}

double found_or(const auto& values, const auto& key, double otherwise) {
  const auto found = values.find(key);
  return found == values.end() ? otherwise : found->second;
}

/// How far a cost may lie below the line between two known sizes, as a part of itself, if it never falls and
/// a byte of a larger message costs no more than one of a smaller. The least is then the larger of what `low`
/// takes and of `high` by its bytes: a stream's cost, whose processors and links work on different messages
/// at the same time. 0 to 1, most where both are equal.
double room_below_line(Bytes size, Bytes low, double low_cost, Bytes high, double high_cost) {
  const auto at = static_cast<double>(size.count), from = static_cast<double>(low.count),
             to = static_cast<double>(high.count);
  const double line = std::lerp(low_cost, high_cost, (at - from) / (to - from));
  const double least = std::max(low_cost, high_cost * at / to);
  return least > 0 ? std::clamp(line / least - 1, 0.0, 1.0) : 0;
}

/// How differently two measured sizes depart from a straight line through the smallest one, by the guessed
/// time per byte: a ratio's logarithm, 0 where both do alike. Between them the cost bends.
double bend_between(const TargetState& state, Bytes low, Bytes high) {
  const Bytes least = state.points.begin()->first;
  const double empty = state.points.begin()->second.times.median();
  const auto departure = [&](Bytes size) {
    const double line = empty + state.target.beta.value * static_cast<double>((size - least).count);
    return std::log(state.points.at(size).times.median() / line);
  };
  return std::abs(departure(high) - departure(low));
}

bool is_of(const Quantity& quantity, const RoadNeed& need) {
  return quantity.road == need.road && quantity.workers == need.workers;
}

Quantity as_target(Quantity quantity) {
  const bool streamed = quantity.in_flight > 1 &&
                        (quantity.subject == Subject::kMessage || quantity.subject == Subject::kExchange ||
                         quantity.subject == Subject::kOperation);
  if (streamed) quantity.in_flight = kStreaming;
  return quantity;
}

}  // namespace

SamplingPlan::SamplingPlan(const std::vector<Target>& targets, const SamplingPlanOptions& options,
                           std::span<const ProbeSample> already)
    : options_(options) {
  add(targets, already);
}

void SamplingPlan::add(const std::vector<Target>& targets, std::span<const ProbeSample> already) {
  for (const Target& target : targets) {
    TargetState state;
    state.target = target;
    const Bytes last = std::min(state.target.largest, options_.last);
    state.grid = log_sizes(options_.first, last, std::sqrt(options_.factor));
    std::erase_if(state.grid, [&](Bytes size) { return size < state.target.smallest && size < last; });
    for (const ProbeSample& sample : already) {
      if (as_target(sample.quantity) != state.target.quantity) continue;
      state.know(sample.sample.size,
                 {SizeTimes(sample.raw_seconds, sample.sample), sample.quantity.in_flight});
    }
    state.refit();
    states_.push_back(std::move(state));
  }
}

bool SamplingPlan::has_target(const RoadNeed& need) const {
  return std::ranges::any_of(states_,
                             [&](const TargetState& state) { return is_of(state.target.quantity, need); });
}

void SamplingPlan::weigh(std::span<const RoadNeed> needs) {
  const auto is_operation = [](const TargetState& state) {
    return state.target.quantity.subject == Subject::kOperation;
  };
  const auto summed = [&](const auto& counts) {
    double sum = 0;
    for (const TargetState& state : states_) {
      if (is_operation(state) && counts(state.target.quantity)) sum += state.target.weight;
    }
    return sum;
  };
  const double all = summed([](const Quantity&) { return true; });
  double value = 0;
  std::vector<double> own;  // by need, of its targets
  for (const RoadNeed& need : needs) {
    own.push_back(summed([&](const Quantity& quantity) { return is_of(quantity, need); }));
    if (own.back() > 0) value += need.value;
  }
  for (TargetState& state : states_) {
    state.need.reset();
    if (!is_operation(state) || !(value > 0)) continue;
    state.need = {0, Bytes{}, Bytes{}};
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (!is_of(state.target.quantity, needs[i])) continue;
      const double share = needs[i].value / value;
      // A stream is measured at no larger sizes than show what a byte costs.
      const Bytes smallest = std::clamp(needs[i].smallest, state.grid.front(), state.grid.back());
      const Bytes largest = std::clamp(needs[i].largest, state.grid.front(), state.grid.back());
      state.need = {share * all * state.target.weight / own[i], smallest, largest};
    }
  }
}

/// Of a size, for the target that it is.
double SamplingPlan::weight(const TargetState& state, Bytes size) const {
  if (!state.need) return state.target.weight;
  const double general = (1 - gains().needed_share) * state.target.weight;
  const Bytes nearest = std::clamp(size, state.need->smallest, state.need->largest);
  const bool counts = octaves(size, nearest) <= gains().needed_octaves;
  return general + (counts ? gains().needed_share * state.need->weight : 0);
}

double SamplingPlan::repetition_time(const TargetState& state, Bytes size) const {
  return state.repetition_time(size, options_.overhead);
}

double SamplingPlan::visit_time(const TargetState& state, Bytes size, int repetitions) const {
  if (is_back_to_back(state.target.quantity)) {
    return repetitions * state.back_to_back_time(size) + options_.overhead.count();
  }
  return repetitions * repetition_time(state, size);
}

Seconds SamplingPlan::expected(std::size_t target, Bytes size) const {
  return Seconds{repetition_time(states_[target], size)};
}

/// Of a size that was not measured yet.
int SamplingPlan::first_repetitions(const TargetState& state, Bytes size) const {
  const double once = repetition_time(state, size);
  int repetitions = 0;
  if (state.streams()) {
    // A long stream is many messages already.
    const int fitting = static_cast<int>(gains().stream_time.count() / once);
    repetitions = std::clamp(fitting, gains().fewest_streams, gains().most_streams);
  } else {
    constexpr int kVisits = 2;  // of an operation's size: what lasts for a while shows between them
    const bool operation = state.target.quantity.subject == Subject::kOperation;
    const int fitting = static_cast<int>(gains().back_to_back_time.count() / state.back_to_back_time(size));
    const int most = operation ? options_.max_iterations / kVisits : options_.max_iterations;
    repetitions = std::clamp(fitting, options_.iterations, std::max(options_.iterations, most));
  }
  const double share = gains().visit_share * options_.budget.count();
  if (visit_time(state, size, repetitions) <= share) return repetitions;
  return std::max(1, std::min(repetitions, static_cast<int>(share / once)));
}

/// Whether an operation of this size is of too few chunks to show what a byte costs. Where messages go whole
/// to one server each, plans have several of them share connections, of which a large one alone tells
/// nothing.
bool SamplingPlan::is_unpipelined(const TargetState& state, Bytes size) const {
  const Quantity& quantity = state.target.quantity;
  const double pipelined = gains().pipelined_chunks * static_cast<double>(options_.chunk.count);
  return quantity.subject == Subject::kOperation && whole_message_servers(quantity.road) == 0 &&
         static_cast<double>(size.count) < pipelined;
}

/// Whether the cost bends between the two largest of measured sizes.
bool SamplingPlan::bends_at_largest(const TargetState& state) const {
  if (state.points.size() < kEnoughSizes) return false;
  const auto last = std::prev(state.points.end());
  return bend_between(state, std::prev(last)->first, last->first) > gains().straight;
}

/// Of a size that was not measured yet, for a target of weight 1.
double SamplingPlan::widening_gain(const TargetState& state, Bytes size) const {
  if (state.points.empty()) return gains().first * (state.streams() ? gains().first_stream : 1);
  const auto above = state.points.lower_bound(size);
  if (above == state.points.begin() || above == state.points.end()) {
    // What handing a stream's messages over takes, the smallest shows: others wait until it is known.
    if (state.streams() && above == state.points.begin() && size > state.grid.front()) return 0;
    const auto& [nearest, known] = above == state.points.end() ? *std::prev(above) : *above;
    // Where start-up is a small part of the largest cost, those beyond are hardly anything but their bytes,
    // unless these have just become dearer, as beyond the size of a cache.
    const bool bends = above == state.points.end() && bends_at_largest(state);
    const double startup = state.streams() || bends || is_unpipelined(state, nearest)
                               ? 1
                               : state.points.begin()->second.times.median() / known.times.median();
    return gains().range * std::min(octaves(size, nearest), gains().most_octaves) *
           std::min(gains().startup_counts * startup, 1.0);
  }
  const auto below = std::prev(above);
  const double low = below->second.times.median(), high = above->second.times.median();
  const double distance = std::min(octaves(size, above->first), octaves(size, below->first));
  const auto misfit = [&](Bytes at) { return found_or(state.residual, at, 0) / options_.width; };
  const double rises = std::log2(std::max(high / low, 1.0));
  // Formulas tell where an operation's cost bends (formula_shape.h), where it is about what they say; but not
  // whether the hosts of a stream work on the next message while one's bytes leave, or have no time to.
  const bool shaped = state.target.quantity.subject == Subject::kOperation;
  const double bend = shaped ? bend_between(state, below->first, above->first) / gains().straight - 1 : 0;
  const double unexplained =
      std::min(std::max({misfit(above->first), misfit(below->first), bend, 0.0}), gains().most_unexplained);
  const double room = room_below_line(size, below->first, low, above->first, high);
  // Small messages both ways between hosts that share cores scatter more than their middle tells.
  const bool both_ways = state.target.quantity.subject == Subject::kExchange;
  const double open = state.streams() && !both_ways ? gains().stream_narrow * room : shaped ? 0 : room;
  return gains().between * std::min(distance, gains().most_octaves) *
         (gains().smooth_share * std::min(rises, 1.0) + unexplained + open);
}

/// A size that was not measured yet.
SamplingPlan::Step SamplingPlan::widening(std::size_t index, Bytes size) const {
  const TargetState& state = states_[index];
  Step step{index, size, first_repetitions(state, size), 0, 0, false};
  step.seconds = visit_time(state, size, step.repetitions) +
                 (state.warms_up(size) ? repetition_time(state, std::min(size, kWarmUpBytes)) : 0);
  step.gain = widening_gain(state, size) * weight(state, size);
  return step;
}

/// How far visits of a size are apart, by how long it takes: what disturbs a host for some time matters to
/// short operations most. Learnt from sizes that were visited more than once.
void SamplingPlan::learn_between_visits() {
  std::map<int, std::vector<double>> known;
  for (const TargetState& state : states_) {
    for (const auto& [size, point] : state.points) {
      if (point.times.between_visits() > 0)
        known[time_class(point.times.median())].push_back(point.times.between_visits());
    }
  }
  between_visits_.clear();
  for (auto& [like, widths] : known) between_visits_[like] = median_interval(widths).median;
}

/// Of a median, as far as it is known.
double SamplingPlan::width(const TargetState& state, Bytes size, const TargetState::Point& point) const {
  if (point.times.repetitions() == 1) return gains().unknown_width;
  if (!point.times.visited_once()) return point.times.width();
  // A stream is many messages, and long. But something else may have run meanwhile.
  if (state.streams()) return std::max(point.times.width(), found_or(state.unexplained, size, 0));
  return std::max(point.times.width(),
                  found_or(between_visits_, time_class(point.times.median()), gains().unknown_width));
}

/// Another visit of a measured size, with as many repetitions as one had so far, within limits.
std::optional<SamplingPlan::Step> SamplingPlan::narrowing(std::size_t index, Bytes size,
                                                          const TargetState::Point& point) const {
  const TargetState& state = states_[index];
  const int done = point.times.repetitions();
  const double wide = width(state, size, point);
  if (wide <= options_.width || done >= options_.max_iterations) {
    return std::nullopt;
  }
  const int usual = done / std::max(1, point.times.visits());
  const int more = std::min(std::max(usual, 2), options_.max_iterations - done);
  const double shrinks = wide / options_.width * (1 - std::sqrt(static_cast<double>(done) / (done + more)));
  const double gain = (state.streams() ? gains().stream_narrow : 1) * shrinks * weight(state, size);
  return Step{index, size, more, gain, visit_time(state, size, more), false};
}

/// Whether it is long enough ago that a size was visited for the next visit to tell something new.
bool SamplingPlan::rested(const Step& step, Seconds left) const {
  const auto& points = states_[step.state].points;
  const auto known = points.find(step.size);
  return known == points.end() || known->second.times.visits() == 0 ||
         known->second.times.left() - left >= gains().visits_apart * options_.budget;
}

/// Whether first sizes, going by those that were measured so far, leave little time to refine any.
bool SamplingPlan::is_short_of_time() const {
  if (visits_ == 0) return false;
  const auto all = static_cast<double>(kEnoughSizes * states_.size());
  const Seconds expected = (*first_left_ - left_) * (all / static_cast<double>(visits_));
  return expected > gains().short_of_time * *first_left_;
}

/// What bytes cost shows best at the largest size that takes no more than a visit's share of the budget. A
/// stream begins with that, where few messages are under way, which get less in each other's way. The sizes
/// that a fit of operations alone may rest on end with it where no larger ones would follow.
bool SamplingPlan::shows_bytes_next(const TargetState& state, bool short_of_time) const {
  if (state.streams()) return state.points.empty();
  return short_of_time && gains().first_sizes && state.target.quantity.subject == Subject::kOperation &&
         state.points.size() + 1 == kEnoughSizes;
}

/// Leaves the others out.
void SamplingPlan::prefer_largest(std::span<Step> by_size) const {
  const double share = gains().visit_share * options_.budget.count();
  const double most = gains().first_sizes ? std::min(share, longest_first_visit()) : share;
  const auto affordable =
      std::find_if(by_size.rbegin(), by_size.rend(), [&](const Step& step) { return step.seconds <= most; });
  if (affordable == by_size.rend()) return;
  for (Step& step : by_size) {
    if (step.size != affordable->size) step.gain = 0;
  }
}

/// What a visit may take so that all targets get the sizes that a fit may rest on.
double SamplingPlan::longest_first_visit() const {
  const auto visits = static_cast<double>(kEnoughSizes * states_.size());
  return gains().first_sizes_share * options_.budget.count() / visits;
}

/// Of a target whose sizes are not enough for a fit: those that bring it on and that it can afford beside all
/// others, or the cheapest of them, come before what any target gets beyond such sizes.
void SamplingPlan::mark_first_sizes(const TargetState& state, std::span<Step> by_size) const {
  const bool any_helps =
      std::ranges::none_of(by_size, [&](const Step& step) { return state.spans_with(step.size); });
  const auto helps = [&](const Step& step) { return any_helps || state.spans_with(step.size); };
  double most = std::numeric_limits<double>::infinity();
  for (const Step& step : by_size) {
    if (helps(step)) most = std::min(most, step.seconds);
  }
  most = std::max(most, longest_first_visit());
  for (Step& step : by_size) step.of_first_sizes = helps(step) && step.seconds <= most;
}

/// First sizes come first, and of them those of links: without their fits no road has a price, so that a
/// probe of too little time would leave nothing to plan on.
int SamplingPlan::turn(const Step& step) const {
  if (!step.of_first_sizes) return 2;
  return states_[step.state].target.quantity.subject == Subject::kMessage ? 0 : 1;
}

std::vector<SamplingPlan::Step> SamplingPlan::steps() const {
  const bool short_of_time = is_short_of_time();
  std::vector<Step> result;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto began = result.size();
    for (const Bytes size : states_[i].grid) {
      if (!states_[i].points.contains(size)) result.push_back(widening(i, size));
    }
    const auto own = std::span(result).subspan(began);
    if (shows_bytes_next(states_[i], short_of_time)) prefer_largest(own);
    if (gains().first_sizes && !states_[i].has_enough_sizes()) mark_first_sizes(states_[i], own);
    for (const auto& [size, point] : states_[i].points) {
      if (const auto step = narrowing(i, size, point)) result.push_back(*step);
    }
  }
  std::stable_sort(result.begin(), result.end(), [&](const Step& a, const Step& b) {
    const int before = turn(a), after = turn(b);
    return before != after ? before < after : a.gain / a.seconds > b.gain / b.seconds;
  });
  return result;
}

Bytes SamplingPlan::traffic(const Step& step) const {
  const TargetState& state = states_[step.state];
  const bool streamed = state.streams();
  const int messages = (step.repetitions + 1) * (streamed ? state.stream_messages(step.size) : 1);
  return Bytes{static_cast<std::uint64_t>(
      std::ceil(state.target.sent * static_cast<double>(step.size.count) * messages))};
}

std::optional<Visit> SamplingPlan::next(Seconds left, std::optional<Bytes> traffic_left) {
  if (!first_left_) first_left_ = left;
  left_ = left;
  const std::vector<Step> all = steps();
  const auto fits = [&](const Step& step) {
    return step.seconds <= left.count() && !(traffic_left && traffic(step) > *traffic_left);
  };
  auto chosen = std::ranges::find_if(all, [&](const Step& step) { return fits(step) && rested(step, left); });
  if (chosen == all.end()) chosen = std::ranges::find_if(all, fits);
  if (chosen == all.end()) return std::nullopt;
  const Step& step = *chosen;
  const TargetState& state = states_[step.state];
  Visit visit{
      step.state,    state.target.quantity, step.size, 1, step.repetitions, true, Seconds{step.seconds},
      traffic(step), step.of_first_sizes};
  if (visit.quantity.in_flight == kStreaming) {
    visit.quantity.in_flight = state.at_once(step.size);
    visit.messages = state.stream_messages(step.size) - visit.quantity.in_flight;
  }
  const auto known = state.points.find(step.size);
  visit.first =
      (known == state.points.end() || known->second.times.visits() == 0) && state.warms_up(step.size);
  return visit;
}

ProbeSample SamplingPlan::record(const Visit& visit, std::span<const double> seconds) {
  assert(!seconds.empty());
  ++visits_;
  TargetState& state = states_[visit.target];
  const SizeTimes times = state.record(visit.size, visit.quantity.in_flight, seconds, left_);
  learn_between_visits();
  return {visit.quantity, times.sample(visit.size), times.seconds()};
}

bool SamplingPlan::complete() const { return steps().empty(); }

std::vector<std::string> SamplingPlan::missing(std::size_t most) const {
  std::vector<std::string> lines;
  for (const Step& step : steps()) {
    if (lines.size() == most) break;
    const TargetState& state = states_[step.state];
    const bool known = state.points.contains(step.size);
    Quantity quantity = state.target.quantity;
    if (quantity.in_flight == kStreaming) quantity.in_flight = state.at_once(step.size);
    lines.push_back(describe(quantity) + ", " + format_size(step.size) +
                    (known ? ": more repetitions, about " : ": about ") + format_time(Seconds{step.seconds}));
  }
  return lines;
}

}  // namespace commtune::probes
