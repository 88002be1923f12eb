#include "perfmodel/simulate/simulate.h"

#include <algorithm>
#include <numeric>

#include "perfmodel/base/never.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/simulate/compute_clock.h"
#include "perfmodel/simulate/network_model.h"
#include "perfmodel/simulate/priority_set.h"
#include "perfmodel/simulate/traffic_clock.h"

namespace commtune {

namespace {

/// Relative difference that adding the same times in another order may make.
constexpr double kRounding = 1e-12;
/// The same of as many as a plan has messages.
constexpr double kRoundingOfMany = 1e-9;
/// If less than this share of the iteration is exposed communication, compute is what binds it.
constexpr double kNegligible = 0.01;

}  // namespace

std::string to_string(Binding binding) {
  switch (binding) {
    case Binding::kCompute:
      return "compute";
    case Binding::kLatency:
      return "latency";
    case Binding::kBandwidth:
      return "bandwidth";
    case Binding::kServer:
      return "server";
  }
  return "unknown";
}

class Simulator::Engine {
 public:
  explicit Engine(const Workload& work) : work_(work), arrival_(work.layers()) {}

  Prediction run(const FlatPlan& plan, const FlatRoad& road, Timeline* timeline) {
    begin(plan, road, timeline);
    send_all();
    finish();
    return prediction(*road.cost);
  }

  Seconds time(const FlatPlan& plan, const FlatRoad& road, Seconds limit) {
    begin(plan, road, nullptr);
    give_up_ = (work_.clock((limit - road.cost->straggling).count()) + most_skew_) * (1 + kRounding);
    if (limit < kNoLimit && road.cost->shared_channel) watches_channel_ = true;
    send_all();
    if (given_up()) return Seconds{kNever};
    finish();
    return iteration(*road.cost);
  }

  Prediction run(const Plan& plan, const RoadCost& cost, Timeline* timeline) {
    return run(FlatPlan{plan, work_}, FlatRoad(cost), timeline);
  }

  std::uint64_t events() const { return events_; }

  std::span<const std::uint32_t> started() const { return started_; }

 private:
  void begin(const FlatPlan& plan, const FlatRoad& road, Timeline* timeline) {
    const RoadCost& cost = *road.cost;
    road_ = &road;
    plan_ = &plan;
    timeline_ = timeline;
    copy_ = cost.copy.value;
    in_turn_ = static_cast<std::uint32_t>(cost.in_turn);
    clock_.reset(cost.interference);
    coupled_ = plan.sequence.empty();
    steps_ = coupled_ ? plan.messages() : plan.sequence.size();
    network_.reset(road, steps_, coupled_,
                   {plan.credit, (coupled_ ? 1 : 2) * work_.total_bytes, !plan.window.empty()},
                   clock_.disturbed());
    walks_layers_ = clock_.disturbed() || timeline_ != nullptr;
    if (walks_layers_) std::fill(arrival_.begin(), arrival_.end(), 0.0);
    iteration_ = work_.compute();
    give_up_ = kNever;
    watches_channel_ = false;
    not_started_ = least_end_ = least_tail_ = 0;
    most_skew_ = most_skew(cost, Bytes{work_.total_bytes}).count();
    stretch_ = {};
    waited_ = 0;
    last_end_ = 0;
    smallest_ = ~std::uint64_t{0};
    largest_ = 0;
    first_come_ = coupled_ && plan.order == Order::kPriority && !plan.overtakes;
    started_.clear();
    pulls_apart_ = !plan.pulls.empty();
    if (pulls_apart_) missing_.assign(plan.pulls.messages.begin(), plan.pulls.messages.end());
    if (timeline_ == nullptr) return;
    timeline_->messages.assign(plan.messages(), {});
    timeline_->pulls.assign(plan.pulls.bytes.size(), {});
  }

  /// True if the messages that have arrived already make the iteration longer than the limit, or those that
  /// have not started.
  bool given_up() const { return iteration_ > give_up_ || least_end_ > give_up_; }

  /// All that has not started has to pass the one channel.
  void watch_channel() {
    channel_times_.clear();
    for (const Step& step : by_urgency_) {
      channel_times_.push_back(channel_time(step));
      not_started_ += channel_times_.back();
    }
    least_tail_ = plan_->barrier == Barrier::kFull ? work_.total_update + work_.total_forward
                                                   : work_.tail[work_.layers() - 1];
  }

  /// For how long a step occupies it.
  double channel_time(const Step& step) const {
    const InFlightMessage sent = pulls(step) ? pull_in_flight(step.message) : in_flight(step.message);
    const FlatCost& cost = coupled_                       ? road_->both
                           : step.stage == Stage::kReduce ? road_->reduce
                                                          : road_->distribute;
    return std::min(cost.occupancy(sent.bytes), cost.alone(sent.bytes)) +
           (coupled_ ? sent.copying : sent.copying / 2);
  }

  void note_start(std::uint32_t urgency, double now) {
    not_started_ -= channel_times_[urgency];
    least_end_ = (now + not_started_) * (1 - kRoundingOfMany) + least_tail_;
  }

  /// first  nothing else is under way
  void note_start_in_stretch(std::uint32_t message, double now, bool first) {
    if (first && now > stretch_.until)
      stretch_ = {.pause = now - stretch_.until, .is_first = stretch_.messages == 0};
    if (stretch_.messages > 0 && stretch_.last == message) return;  // its other stage
    ++stretch_.messages;
    stretch_.last = message;
  }

  /// By how much ranks that are out of step make the iteration shorter: where it ends with one message, and
  /// the pause before that is long enough. Of several the shortest would say how far apart they may be, which
  /// is little.
  double skew() const {
    if (stretch_.messages != 1) return 0;
    const double bytes = static_cast<double>(plan_->bytes[stretch_.last]);
    const double apart = road_->cost->skew.seconds(road_->both.alone.bytes_part(bytes));
    const double pause = stretch_.pause + (stretch_.is_first ? iteration_ - stretch_.until : 0);
    const double beside_compute = std::max(0.0, std::min({apart, pause, iteration_ - computing()}));
    return beside_compute / (1 + road_->cost->interference);
  }

  /// Ends the iteration earlier by that.
  void take_skew() {
    const double earlier = skew();
    iteration_ -= earlier;
    if (walks_layers_) waited_ -= earlier;
  }

  /// Compute work that must be done before this message may go.
  double released_work(std::uint32_t message) const {
    return plan_->release == Release::kBackward ? work_.total_backward
                                                : work_.ready[plan_->lowest_layer[message]];
  }

  InFlightMessage in_flight(std::uint32_t message) const {
    const double bytes = static_cast<double>(plan_->bytes[message]);
    return {server_of(message), bytes, plan_->copied[message] != 0 ? copy_ * bytes : 0};
  }

  std::uint32_t server_of(std::uint32_t message) const {
    if (in_turn_ == 0) return 0;
    return plan_->server.empty() ? message % in_turn_ : plan_->server[message];
  }

  InFlightMessage pull_in_flight(std::uint32_t pull) const {
    const double bytes = static_cast<double>(plan_->pulls.bytes[pull]);
    return {0, bytes, plan_->pulls.copied[pull] != 0 ? copy_ * bytes : 0};
  }

  /// Notes that the message is summed and back on every worker at the moment `end`.
  void arrive(std::uint32_t message, double end) {
    arrive(plan_->bytes[message], plan_->lowest_layer[message], end);
  }

  void arrive(std::uint64_t bytes, std::uint32_t layer, double end) {
    smallest_ = std::min(smallest_, bytes);
    largest_ = std::max(largest_, bytes);
    last_end_ = std::max(last_end_, end);
    if (plan_->barrier == Barrier::kFull) return;
    iteration_ = std::max(iteration_, end + work_.tail[layer]);
    if (walks_layers_) arrival_[layer] = std::max(arrival_[layer], end);
  }

  /// Simulates communication until every message has arrived, or the limit is exceeded.
  void send_all() {
    order_steps();
    if (watches_channel_) watch_channel();
    double now = 0, release = next_release(now);
    std::size_t arrived = 0;
    while (arrived < steps_ && !given_up()) {
      std::uint32_t next = next_step();
      for (; next != waiting_.none() && credit_allows(next); next = next_step()) {
        if (watches_channel_) note_start(next, now);
        if (most_skew_ > 0) note_start_in_stretch(by_urgency_[next].message, now, next_in_list_ == arrived);
        start(next);
      }
      if (network_.arrived().empty()) {
        now = network_.advance(release, next != waiting_.none(), clock_);
        // What was sent meanwhile may have slowed compute: a release comes no sooner than was thought.
        if (release <= now && clock_.disturbed()) release = next_release(now);
        if (release <= now) {
          take_released();
          release = next_release(now);
        }
      }
      for (const NetworkModel::Arrival& arrival : network_.arrived()) {
        take(arrival);
        if (most_skew_ > 0)
          stretch_.until = std::max({stretch_.until, arrival.reduce.end, arrival.distribute.end});
      }
      arrived += network_.arrived().size();
      network_.forget_arrived();
    }
  }

  bool credit_allows(std::uint32_t urgency) {
    if (pulls(by_urgency_[urgency])) return true;
    if (!plan_->window.empty()) network_.set_credit(plan_->window[by_urgency_[urgency].message]);
    return network_.credit_allows();
  }

  /// The step to start next: the most urgent released one, or for a list the next one if it is released.
  /// waiting_.none() if there is no such step.
  std::uint32_t next_step() {
    if (plan_->order == Order::kPriority) return waiting_.smallest();
    return waiting_.contains(next_in_list_) ? next_in_list_ : waiting_.none();
  }

  void start(std::uint32_t urgency) {
    const Step& step = by_urgency_[urgency];
    waiting_.erase(urgency);
    ++next_in_list_;
    ++events_;
    if (first_come_) {
      network_.start(static_cast<std::uint32_t>(started_.size()), in_flight(step.message), clock_);
      started_.push_back(step.message);
    } else if (coupled_) {
      network_.start(urgency, in_flight(step.message), clock_);
    } else {
      network_.start(urgency, pulls(step) ? pull_in_flight(step.message) : in_flight(step.message),
                     step.stage, clock_);
    }
  }

  /// Whether a step brings back what was not pushed as one.
  bool pulls(const Step& step) const { return pulls_apart_ && step.stage == Stage::kDistribute; }

  void take(const NetworkModel::Arrival& arrival) {
    const auto [message, stage] =
        first_come_ ? Step{started_[arrival.urgency]} : by_urgency_[arrival.urgency];
    if (pulls_apart_) return take_apart(arrival);
    if (timeline_ != nullptr) {
      record(message, stage, arrival.reduce);
      if (coupled_) record(message, Stage::kDistribute, arrival.distribute);
    }
    if (coupled_ || stage == Stage::kDistribute) {
      arrive(message, arrival.distribute.end);
    } else {
      waiting_.insert(distribute_[message]);
    }
  }

  /// The same under a plan with pulls.
  void take_apart(const NetworkModel::Arrival& arrival) {
    const auto [number, stage] = by_urgency_[arrival.urgency];
    const FlatPulls& back = plan_->pulls;
    if (stage == Stage::kDistribute) {
      if (timeline_ != nullptr) record(timeline_->pulls[number], stage, arrival.reduce);
      return arrive(back.bytes[number], back.lowest_layer[number], arrival.distribute.end);
    }
    if (timeline_ != nullptr) {
      record(number, stage, arrival.reduce);
      record(number, Stage::kDistribute, {arrival.reduce.end, arrival.reduce.end});
    }
    for (const std::uint32_t pull : back.of_message[number]) {
      if (--missing_[pull] > 0) continue;
      waiting_.insert(distribute_[pull]);
      if (timeline_ == nullptr) continue;
      MessageSpan& span = timeline_->pulls[pull];
      span.released = span.reduce_start = span.reduce_end = Seconds{arrival.reduce.end};
    }
  }

  void record(std::uint32_t message, Stage stage, StageInterval interval) {
    record(timeline_->messages[message], stage, interval);
  }

  static void record(MessageSpan& span, Stage stage, StageInterval interval) {
    if (stage == Stage::kReduce) {
      span.reduce_start = Seconds{interval.from};
      span.reduce_end = Seconds{interval.end};
    } else {
      span.distribute_start = Seconds{interval.from};
      span.distribute_end = Seconds{interval.end};
    }
  }

  /// Gives every step its urgency. No step is released yet.
  void order_steps() {
    sort_by_release();
    waiting_.reset(steps_);
    next_ = next_in_list_ = 0;
    reduce_.resize(plan_->messages());
    if (coupled_) {
      order_messages();
    } else {
      order_sequence();
    }
  }

  void order_messages() {
    by_urgency_.resize(steps_);
    for (std::uint32_t message = 0; message < steps_; ++message) {
      const std::uint32_t urgency = plan_->order == Order::kPriority ? plan_->rank[message] : message;
      by_urgency_[urgency] = {message};
      reduce_[message] = urgency;
    }
  }

  void order_sequence() {
    by_urgency_ = plan_->sequence;
    distribute_.resize(pulls_apart_ ? plan_->pulls.bytes.size() : plan_->messages());
    for (std::uint32_t urgency = 0; urgency < steps_; ++urgency) {
      const Step& step = by_urgency_[urgency];
      (step.stage == Stage::kReduce ? reduce_ : distribute_)[step.message] = urgency;
    }
  }

  /// Moment at which the next message is released; infinity if all are.
  double next_release(double now) {
    if (next_ == plan_->messages()) return kNever;
    return std::max(now, clock_.when(released_work(by_release_[next_])));
  }

  /// Releases all messages whose gradients appear at that moment.
  void take_released() {
    const double work = released_work(by_release_[next_]);
    while (next_ < plan_->messages() && released_work(by_release_[next_]) <= work) {
      waiting_.insert(reduce_[by_release_[next_++]]);
    }
    clock_.reach(work);
  }

  /// Sorts the messages by the moment at which their gradients appear. Most plans list them in that order.
  void sort_by_release() {
    by_release_.resize(plan_->messages());
    std::iota(by_release_.begin(), by_release_.end(), 0U);
    const auto sooner = [this](std::uint32_t a, std::uint32_t b) {
      return plan_->lowest_layer[a] > plan_->lowest_layer[b];
    };
    if (std::is_sorted(by_release_.begin(), by_release_.end(), sooner)) return;
    if (plan_->messages() < work_.layers() / 16) {
      std::stable_sort(by_release_.begin(), by_release_.end(), sooner);
    } else {
      count_by_release();
    }
  }

  /// The same by a counting sort, in O(messages + layers).
  void count_by_release() {
    const std::size_t layers = work_.layers();
    counts_.assign(layers + 1, 0);
    for (const std::uint32_t layer : plan_->lowest_layer) ++counts_[layers - layer];
    std::partial_sum(counts_.begin(), counts_.end(), counts_.begin());
    for (std::uint32_t message = 0; message < plan_->messages(); ++message) {
      by_release_[counts_[layers - 1 - plan_->lowest_layer[message]]++] = message;
    }
  }

  /// Runs the forward pass layer by layer and returns its end. Needed if traffic slows compute, or if a
  /// timeline is asked for.
  double walk_forward() {
    double now = clock_.reach(work_.total_backward);
    for (std::size_t i = 0; i < work_.layers(); ++i) {
      const double back = plan_->barrier == Barrier::kFull ? last_end_ : arrival_[i];
      const double from = std::max(now, back);
      waited_ += from - now;
      now = clock_.run(from, work_.update[i] + work_.forward[i]);
      if (timeline_ != nullptr) {
        timeline_->forward_start[i] = Seconds{from};
        timeline_->forward_end[i] = Seconds{now};
      }
    }
    return now;
  }

  /// Ends the iteration, once every message has arrived.
  void finish() {
    if (timeline_ != nullptr) record_backward();
    if (walks_layers_) {
      iteration_ = walk_forward();
    } else if (plan_->barrier == Barrier::kFull) {
      iteration_ = std::max(iteration_, last_end_ + work_.total_update + work_.total_forward);
    }
    if (most_skew_ > 0) take_skew();
    if (timeline_ != nullptr) to_real_time(*timeline_, work_.contention);
  }

  /// Seconds of the iteration during which compute ran.
  double computing() const { return walks_layers_ ? iteration_ - waited_ : work_.compute(); }
  Seconds iteration(const RoadCost& cost) const {
    return Seconds{work_.real(iteration_, computing())} + cost.straggling;
  }

  Prediction prediction(const RoadCost& cost) const {
    Prediction prediction;
    prediction.iteration = iteration(cost);
    prediction.compute = Seconds{work_.real(work_.compute(), work_.compute())};
    const Seconds exposed = prediction.iteration - prediction.compute;
    prediction.exposed = exposed > kRounding * prediction.iteration ? exposed : Seconds{0};
    const double beside_compute = std::max(0.0, network_.under_way() - (iteration_ - computing()));
    prediction.communication = Seconds{work_.real(network_.under_way(), beside_compute)};
    prediction.basis = cost.basis;
    prediction.extrapolated = plan_->messages() > 0 && (Bytes{smallest_} < cost.measured_smallest ||
                                                        Bytes{largest_} > cost.measured_largest);
    prediction.binding = binding(prediction, cost);
    return prediction;
  }

  Binding binding(const Prediction& prediction, const RoadCost& cost) const {
    if (prediction.exposed <= kNegligible * prediction.iteration) return Binding::kCompute;
    if (2 * network_.bytes_time() < network_.under_way()) return Binding::kLatency;
    return cost.server_binds ? Binding::kServer : Binding::kBandwidth;
  }

  /// Fills in the backward pass and the releases. Done last, when all traffic that slows them is known.
  void record_backward() {
    const std::size_t n = work_.layers();
    timeline_->backward_start.assign(n, {});
    timeline_->backward_end.assign(n, {});
    timeline_->forward_start.assign(n, {});
    timeline_->forward_end.assign(n, {});
    ComputeClock clock = clock_;
    clock.rewind();
    double now = 0;
    for (std::size_t i = n; i-- > 0;) {
      timeline_->backward_start[i] = Seconds{now};
      now = clock.run(now, work_.backward[i]);
      timeline_->backward_end[i] = Seconds{now};
    }
    for (std::size_t message = 0; message < plan_->messages(); ++message) {
      const std::size_t last = plan_->release == Release::kBackward ? 0 : plan_->lowest_layer[message];
      timeline_->messages[message].released = timeline_->backward_end[last];
    }
  }

  const Workload& work_;
  const FlatPlan* plan_ = nullptr;
  const FlatRoad* road_ = nullptr;
  Timeline* timeline_ = nullptr;
  bool coupled_ = true;
  bool pulls_apart_ = false;            ///< the plan has pulls
  bool first_come_ = false;             ///< the channel is given to what started first
  std::vector<std::uint32_t> started_;  ///< then: messages in that order
  std::size_t steps_ = 0;
  double copy_ = 0;
  std::uint32_t in_turn_ = 0;  ///< servers that take messages whole
  NetworkModel network_;
  ComputeClock clock_;
  bool walks_layers_ = false;
  std::vector<double> arrival_;  ///< by layer: when the last message is back whose lowest layer it is
  double iteration_ = 0;         ///< before finish(): a lower limit of the result
  double waited_ = 0, last_end_ = 0;
  double give_up_ = kNever;  ///< the simulation ends early once iteration_ or least_end_ exceeds this
  double most_skew_ = 0;     ///< of any plan on the road; 0: ranks are in step
  /// The last time without a pause during which messages are under way; kept where ranks may be out of step.
  struct Stretch {
    int messages = 0;
    std::uint32_t last = 0;  ///< of them
    double until = 0;        ///< for as long as is known yet
    double pause = 0;        ///< before it; of the iteration's first one from time zero on
    bool is_first = true;
  };
  Stretch stretch_;
  bool watches_channel_ = false;           ///< it says what the iteration takes at least
  std::vector<double> channel_times_;      ///< by urgency: seconds that a step occupies it
  double not_started_ = 0;                 ///< the same of all steps that have not started
  double least_end_ = 0, least_tail_ = 0;  ///< of the iteration, by that; of what follows the last message
  std::uint64_t smallest_ = 0, largest_ = 0, events_ = 0;
  std::vector<Step> by_urgency_;
  std::vector<std::uint32_t> reduce_, distribute_;  ///< by message (or pull): the urgency of its steps
  std::vector<std::uint32_t> missing_;              ///< by pull: messages that are not summed yet
  std::vector<std::uint32_t> by_release_, counts_;
  std::size_t next_ = 0;            ///< index into by_release_ of the first message that is not released
  std::uint32_t next_in_list_ = 0;  ///< first step of a list that is not started
  PrioritySet waiting_;
};

Simulator::Simulator(const Workload& work) : engine_(std::make_unique<Engine>(work)) {}
Simulator::~Simulator() = default;

Prediction Simulator::run(const FlatPlan& plan, const RoadCost& cost, Timeline* timeline) {
  return engine_->run(plan, FlatRoad(cost), timeline);
}

Prediction Simulator::run(const FlatPlan& plan, const FlatRoad& road, Timeline* timeline) {
  return engine_->run(plan, road, timeline);
}

Prediction Simulator::run(const Plan& plan, const RoadCost& cost, Timeline* timeline) {
  return engine_->run(plan, cost, timeline);
}

Seconds Simulator::time(const FlatPlan& plan, const FlatRoad& road, Seconds limit) {
  return engine_->time(plan, road, limit);
}

std::span<const std::uint32_t> Simulator::started() const { return engine_->started(); }

std::uint64_t Simulator::events() const { return engine_->events(); }

Prediction simulate(const Workload& work, const Plan& plan, const RoadCost& cost, Timeline* timeline) {
  return Simulator{work}.run(plan, cost, timeline);
}

}  // namespace commtune
