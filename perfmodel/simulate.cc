#include "perfmodel/simulate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <limits>
#include <numeric>

namespace commtune {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Sums in another order differ by this part.
constexpr double kRounding = 1e-12;
/// Exposed communication below this share of the iteration is no limit worth naming.
constexpr double kNegligible = 0.01;

/// A cost curve laid out for the inner loop.
class FlatCurve {
 public:
  void assign(const Curve& curve) {
    pieces_.clear();
    for (const CurvePiece& piece : curve.pieces()) {
      pieces_.push_back({static_cast<double>(piece.from.count), piece.alpha.count(), piece.beta.value});
    }
    if (pieces_.empty()) pieces_.push_back({0, 0, 0});
  }
  double operator()(double m) const {
    const Piece& piece = at(m);
    return piece.alpha + piece.beta * m;
  }
  /// The part of the cost that more bytes would not have raised.
  double latency(double m) const { return at(m).alpha; }

 private:
  struct Piece {
    double from, alpha, beta;
  };
  const Piece& at(double m) const {
    std::size_t i = pieces_.size() - 1;
    while (pieces_[i].from > m) --i;
    return pieces_[i];
  }
  std::vector<Piece> pieces_;
};

/// What one stage costs, ready to be asked for every message.
struct FlatCost {
  FlatCurve alone, occupancy;
  void assign(const StageCost& cost) {
    alone.assign(cost.alone);
    occupancy.assign(cost.occupancy);
  }
};

/// Times at which a channel is occupied, in order.
class BusyTimes {
 public:
  void clear() {
    spans_.clear();
    next_ = 0;
  }
  void add(double from, double until) {
    if (until <= from) return;
    if (!spans_.empty() && spans_.back().until >= from && spans_.size() > next_) {
      spans_.back().until = until;
    } else {
      spans_.push_back({from, until});
    }
  }
  /// Forgets what ended by `now`.
  void pass(double now) {
    while (next_ < spans_.size() && spans_[next_].until <= now) ++next_;
  }
  void rewind() { next_ = 0; }
  struct Span {
    double from, until;
  };
  const Span* begin() const { return spans_.data() + next_; }
  const Span* end() const { return spans_.data() + spans_.size(); }

 private:
  std::vector<Span> spans_;
  std::size_t next_ = 0;
};

/// The compute side: work is done at full speed while both channels are idle and 1/(1+kappa) of it otherwise.
class ComputeClock {
 public:
  void reset(double kappa) {
    slow_ = 1 + kappa;
    now_ = 0;
    work_ = 0;
    busy_[0].clear();
    busy_[1].clear();
  }
  /// Back to the start of the backward pass, with everything that was sent since then known.
  void rewind() {
    now_ = work_ = 0;
    busy_[0].rewind();
    busy_[1].rewind();
  }
  bool disturbed() const { return slow_ > 1; }
  double work() const { return work_; }
  void occupy(std::size_t channel, double from, double until) {
    if (disturbed()) busy_[channel].add(from, until);
  }
  /// When `work` will be done, if nothing more is sent.
  double when(double work) const { return disturbed() ? now_ + stretched(now_, work - work_) : work; }
  /// Moves the clock to where `work` is done.
  double reach(double work) {
    now_ = when(work);
    work_ = work;
    busy_[0].pass(now_);
    busy_[1].pass(now_);
    return now_;
  }
  /// End of `amount` of work that starts at `from`, no earlier than the clock; moves the clock there.
  double run(double from, double amount) {
    if (!disturbed()) return now_ = from + amount;
    busy_[0].pass(from);
    busy_[1].pass(from);
    now_ = from + stretched(from, amount);
    return now_;
  }

 private:
  /// How long `amount` of work lasts from `from` on.
  double stretched(double from, double amount) const {
    const BusyTimes::Span* a = busy_[0].begin();
    const BusyTimes::Span* b = busy_[1].begin();
    double at = from;
    while (amount > 0) {
      while (a != busy_[0].end() && a->until <= at) ++a;
      while (b != busy_[1].end() && b->until <= at) ++b;
      const auto edge = [at](const BusyTimes::Span* span, const BusyTimes::Span* end, bool& busy) {
        if (span == end) return kNever;
        if (span->from > at) return span->from;
        busy = true;
        return span->until;
      };
      bool busy = false;
      const double until = std::min(edge(a, busy_[0].end(), busy), edge(b, busy_[1].end(), busy));
      const double rate = busy ? 1 / slow_ : 1;
      if (amount <= (until - at) * rate) return at + amount / rate - from;
      amount -= (until - at) * rate;
      at = until;
    }
    return at - from;
  }

  double slow_ = 1, now_ = 0, work_ = 0;
  std::array<BusyTimes, 2> busy_;
};

/// Messages under way, by the time at which they end.
class Flight {
 public:
  void clear() {
    ends_.clear();
    head_ = 0;
    bytes_ = 0;
  }
  bool empty() const { return head_ == ends_.size(); }
  double first_end() const { return ends_[head_].at; }
  bool fits(std::uint64_t own, std::uint64_t credit) const {
    return empty() || (bytes_ <= credit && own <= credit - bytes_);
  }
  void add(double end, std::uint64_t own) {
    ends_.push_back({end, own});
    // Almost sorted already: a message seldom overtakes another.
    for (std::size_t i = ends_.size() - 1; i > head_ && ends_[i - 1].at > ends_[i].at; --i) {
      std::swap(ends_[i - 1], ends_[i]);
    }
    bytes_ += own;
  }
  void retire(double now) {
    while (!empty() && ends_[head_].at <= now) bytes_ -= ends_[head_++].bytes;
  }

 private:
  struct End {
    double at;
    std::uint64_t bytes;
  };
  std::vector<End> ends_;
  std::size_t head_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Small integers of which the smallest is taken first.
class RankSet {
 public:
  void reset(std::size_t size) {
    words_.assign((size + 63) / 64, 0);
    lowest_ = words_.size();
  }
  void insert(std::uint32_t rank) {
    words_[rank / 64] |= std::uint64_t{1} << (rank % 64);
    lowest_ = std::min<std::size_t>(lowest_, rank / 64);
  }
  bool empty() {
    while (lowest_ < words_.size() && words_[lowest_] == 0) ++lowest_;
    return lowest_ == words_.size();
  }
  /// Not empty.
  std::uint32_t smallest() const {
    return static_cast<std::uint32_t>(lowest_ * 64 +
                                      static_cast<std::size_t>(std::countr_zero(words_[lowest_])));
  }
  void erase(std::uint32_t rank) { words_[rank / 64] &= ~(std::uint64_t{1} << (rank % 64)); }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t lowest_ = 0;
};

}  // namespace

Workload::Workload(const Profile& profile) : tensors(tensors_of(profile)) {
  const std::size_t n = profile.layers.size();
  ready.resize(n);
  tail.resize(n);
  layer_bytes.assign(n, 0);
  for (const Layer& layer : profile.layers) {
    forward.push_back(layer.forward.count());
    backward.push_back(layer.backward.count());
    update.push_back(layer.update.count());
    total_update += layer.update.count();
  }
  for (std::size_t i = n; i-- > 0;) {
    ready[i] = total_backward += backward[i];
    total_forward += forward[i];
    tail[i] = (i + 1 < n ? tail[i + 1] : 0) + update[i] + forward[i];
  }
  for (const TensorRef& tensor : tensors) {
    layer_bytes[tensor.layer] += tensor.bytes.count;
    total_bytes += tensor.bytes.count;
  }
}

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

FlatPlan::FlatPlan(const Plan& plan, const Workload& work)
    : sequence(plan.sequence),
      release(plan.release),
      order(plan.order),
      barrier(plan.barrier),
      credit(plan.credit.count) {
  for (const Message& message : plan.messages) {
    std::uint64_t total = 0;
    std::uint32_t lowest = std::numeric_limits<std::uint32_t>::max();
    for (const Piece& piece : message.pieces) {
      total += piece.length.count;
      lowest = std::min(lowest, work.tensors[piece.tensor].layer);
    }
    add_message(total, lowest, message.pieces.size() > 1);
  }
  if (order != Order::kPriority) return;
  std::vector<std::uint32_t> urgent(messages());
  std::iota(urgent.begin(), urgent.end(), 0U);
  std::sort(urgent.begin(), urgent.end(),
            [&](std::uint32_t a, std::uint32_t b) { return plan.priority[a] < plan.priority[b]; });
  rank.resize(messages());
  for (std::uint32_t i = 0; i < urgent.size(); ++i) rank[urgent[i]] = i;
}

void FlatPlan::clear() {
  bytes.clear();
  lowest_layer.clear();
  fused.clear();
  rank.clear();
  sequence.clear();
}

void FlatPlan::add_message(std::uint64_t message_bytes, std::uint32_t lowest, bool is_fused) {
  bytes.push_back(message_bytes);
  lowest_layer.push_back(lowest);
  fused.push_back(is_fused ? 1 : 0);
}

class Simulator::Engine {
 public:
  explicit Engine(const Workload& work) : work_(work), arrival_(work.layers()) {}

  Prediction run(const FlatPlan& plan, const RoadCost& cost, Timeline* timeline) {
    begin(plan, cost, timeline);
    if (plan.order == Order::kPriority) {
      run_by_priority();
    } else if (plan.sequence.empty()) {
      run_in_list_order();
    } else {
      run_decoupled();
    }
    events_ += plan.sequence.empty() ? plan.messages() : plan.sequence.size();
    return finish(cost);
  }

  Prediction run(const Plan& plan, const RoadCost& cost, Timeline* timeline) {
    return run(FlatPlan{plan, work_}, cost, timeline);
  }

  std::uint64_t events() const { return events_; }

 private:
  struct Channel {
    double free = 0;  ///< when the next message may be served
    double bytes_time = 0;
  };
  /// How one step went.
  struct Passage {
    double from, end;
  };

  void begin(const FlatPlan& plan, const RoadCost& cost, Timeline* timeline) {
    plan_ = &plan;
    timeline_ = timeline;
    shared_ = cost.shared_channel;
    credit_ends_early_ = cost.credit_ends_early;
    copy_ = cost.copy.value;
    both_.assign(cost.both);
    reduce_.assign(cost.reduce);
    distribute_.assign(cost.distribute);
    clock_.reset(cost.interference);
    flight_.clear();
    channel_ = {};
    walks_layers_ = clock_.disturbed() || timeline_ != nullptr;
    if (walks_layers_) std::fill(arrival_.begin(), arrival_.end(), 0.0);
    iteration_ = work_.compute();
    last_end_ = under_way_ = under_way_until_ = 0;
    smallest_ = ~std::uint64_t{0};
    largest_ = 0;
    if (timeline_ != nullptr) timeline_->messages.assign(plan.messages(), {});
  }

  /// Compute work that must be done before this message may go.
  double released_work(std::uint32_t message) const {
    return plan_->release == Release::kBackward ? work_.total_backward
                                                : work_.ready[plan_->lowest_layer[message]];
  }

  /// Sends through a channel no earlier than `from`.
  Passage pass(std::size_t channel, const FlatCost& cost, double from, double bytes, double copying) {
    Channel& by = channel_[channel];
    const double service = std::max(from, by.free);
    const double alone = cost.alone(bytes) + copying;
    const double occupancy = std::min(cost.occupancy(bytes) + copying, alone);
    by.free = service + occupancy;
    by.bytes_time += occupancy - std::min(occupancy, cost.occupancy.latency(bytes));
    clock_.occupy(channel, service, by.free);
    const double end = service + alone;
    if (service > under_way_until_) under_way_until_ = service;
    if (end > under_way_until_) {
      under_way_ += end - under_way_until_;
      under_way_until_ = end;
    }
    return {service, end};
  }

  double copying(std::uint32_t message) const {
    return plan_->fused[message] != 0 ? copy_ * static_cast<double>(plan_->bytes[message]) : 0;
  }

  /// Both stages of a message that starts at `start`.
  void send(std::uint32_t message, double start) {
    const double bytes = static_cast<double>(plan_->bytes[message]);
    const double copy = copying(message);
    double credited = 0, end = 0;
    if (shared_) {
      const Passage both = pass(0, both_, start, bytes, copy);
      if (timeline_ != nullptr) split(message, both, bytes);
      end = both.end;
      if (credit_ends_early_) credited = std::min(end, both.from + reduce_.alone(bytes) + copy / 2);
    } else {
      const Passage there = pass(0, reduce_, start, bytes, copy / 2);
      const Passage back = pass(1, distribute_, there.end, bytes, copy / 2);
      if (timeline_ != nullptr) {
        timeline_->messages[message] = {
            {}, Seconds{there.from}, Seconds{there.end}, Seconds{back.from}, Seconds{back.end}};
      }
      end = back.end;
      credited = there.end;
    }
    flight_.add(credit_ends_early_ ? credited : end, plan_->bytes[message]);
    arrive(message, end);
  }

  void split(std::uint32_t message, Passage both, double bytes) {
    const double reduce = reduce_.alone(bytes), distribute = distribute_.alone(bytes);
    const double share = reduce + distribute > 0 ? reduce / (reduce + distribute) : 1;
    const Seconds middle{both.from + share * (both.end - both.from)};
    timeline_->messages[message] = {{}, Seconds{both.from}, middle, middle, Seconds{both.end}};
  }

  /// The message's bytes are summed and back at `end`.
  void arrive(std::uint32_t message, double end) {
    const std::uint64_t bytes = plan_->bytes[message];
    smallest_ = std::min(smallest_, bytes);
    largest_ = std::max(largest_, bytes);
    last_end_ = std::max(last_end_, end);
    if (plan_->barrier == Barrier::kFull) return;
    const std::uint32_t layer = plan_->lowest_layer[message];
    if (!walks_layers_) {
      iteration_ = std::max(iteration_, end + work_.tail[layer]);
    } else {
      arrival_[layer] = std::max(arrival_[layer], end);
    }
  }

  /// First moment from `start` on at which the credit lets a step of `bytes` start.
  double when_credit_allows(double start, std::uint64_t bytes) {
    flight_.retire(start);
    while (!flight_.fits(bytes, plan_->credit)) {
      start = flight_.first_end();
      flight_.retire(start);
    }
    return start;
  }

  void run_in_list_order() {
    const auto n = static_cast<std::uint32_t>(plan_->messages());
    double start = 0;
    for (std::uint32_t message = 0; message < n; ++message) {
      start = when_credit_allows(std::max(start, release_in_order(message)), plan_->bytes[message]);
      send(message, start);
    }
  }

  /// Release time of the next message of a list: whatever is sent before it has been sent by now, so the
  /// compute clock may move on. A list may also go back to a gradient that exists already.
  double release_in_order(std::uint32_t message) {
    const double work = released_work(message);
    return work <= clock_.work() ? 0 : clock_.reach(work);
  }

  void run_decoupled() {
    reduced_.assign(plan_->messages(), 0.0);
    double start = 0;
    for (const Step& step : plan_->sequence) {
      const std::uint64_t bytes = plan_->bytes[step.message];
      const bool reduce = step.stage == Stage::kReduce;
      const double released = reduce ? release_in_order(step.message) : reduced_[step.message];
      start = when_credit_allows(std::max(start, released), bytes);
      const std::size_t channel = shared_ || reduce ? 0 : 1;
      const Passage passage = pass(channel, reduce ? reduce_ : distribute_, start, static_cast<double>(bytes),
                                   copying(step.message) / 2);
      flight_.add(passage.end, bytes);
      if (reduce) {
        reduced_[step.message] = passage.end;
      } else {
        arrive(step.message, passage.end);
      }
      if (timeline_ != nullptr) record(step, passage);
    }
  }

  void record(const Step& step, Passage passage) {
    MessageSpan& span = timeline_->messages[step.message];
    if (step.stage == Stage::kReduce) {
      span.reduce_start = Seconds{passage.from};
      span.reduce_end = Seconds{passage.end};
    } else {
      span.distribute_start = Seconds{passage.from};
      span.distribute_end = Seconds{passage.end};
    }
  }

  void run_by_priority() {
    const std::size_t n = plan_->messages();
    sort_by_release();
    waiting_.reset(n);
    by_rank_.resize(n);
    for (std::uint32_t message = 0; message < n; ++message) by_rank_[plan_->rank[message]] = message;
    double now = 0;
    std::size_t next = 0;  // into by_release_
    std::size_t started = 0;
    while (started < n) {
      if (!waiting_.empty()) {
        const std::uint32_t message = by_rank_[waiting_.smallest()];
        if (flight_.fits(plan_->bytes[message], plan_->credit)) {
          waiting_.erase(plan_->rank[message]);
          send(message, now);
          ++started;
          continue;
        }
      }
      const double release = next < n ? std::max(now, clock_.when(released_work(by_release_[next]))) : kNever;
      now = std::min(release, flight_.empty() ? kNever : flight_.first_end());
      flight_.retire(now);
      if (release > now) continue;
      for (const double work = released_work(by_release_[next]);
           next < n && released_work(by_release_[next]) <= work; ++next) {
        waiting_.insert(plan_->rank[by_release_[next]]);
      }
      clock_.reach(released_work(by_release_[next - 1]));
    }
  }

  /// Messages in the order in which their gradients appear: a counting sort by layer.
  void sort_by_release() {
    const std::size_t layers = work_.layers(), n = plan_->messages();
    counts_.assign(layers + 1, 0);
    by_release_.resize(n);
    for (const std::uint32_t layer : plan_->lowest_layer) ++counts_[layers - layer];
    std::partial_sum(counts_.begin(), counts_.end(), counts_.begin());
    for (std::uint32_t message = 0; message < n; ++message) {
      by_release_[counts_[layers - 1 - plan_->lowest_layer[message]]++] = message;
    }
  }

  /// End of the next forward pass, layer by layer: compute may be slowed, or somebody wants to see it.
  double walk_forward() {
    double now = clock_.reach(work_.total_backward);
    if (plan_->barrier == Barrier::kFull) now = std::max(now, last_end_);
    for (std::size_t i = 0; i < work_.layers(); ++i) {
      const double from = std::max(now, arrival_[i]);
      now = clock_.run(from, work_.update[i] + work_.forward[i]);
      if (timeline_ != nullptr) {
        timeline_->forward_start[i] = Seconds{from};
        timeline_->forward_end[i] = Seconds{now};
      }
    }
    return now;
  }

  Prediction finish(const RoadCost& cost) {
    if (timeline_ != nullptr) record_backward();
    if (walks_layers_) {
      iteration_ = walk_forward();
    } else if (plan_->barrier == Barrier::kFull) {
      iteration_ = std::max(iteration_, last_end_ + work_.total_update + work_.total_forward);
    }
    Prediction prediction;
    prediction.iteration = Seconds{iteration_} + cost.straggling;
    prediction.compute = Seconds{work_.compute()};
    const Seconds exposed = prediction.iteration - prediction.compute;
    prediction.exposed = exposed > kRounding * prediction.iteration ? exposed : Seconds{0};
    prediction.communication = Seconds{under_way_};
    prediction.basis = cost.basis;
    prediction.extrapolated = plan_->messages() > 0 && (Bytes{smallest_} < cost.measured_smallest ||
                                                        Bytes{largest_} > cost.measured_largest);
    prediction.binding = binding(prediction, cost);
    return prediction;
  }

  Binding binding(const Prediction& prediction, const RoadCost& cost) const {
    if (prediction.exposed <= kNegligible * prediction.iteration) return Binding::kCompute;
    if (2 * std::max(channel_[0].bytes_time, channel_[1].bytes_time) < under_way_) return Binding::kLatency;
    return cost.server_binds ? Binding::kServer : Binding::kBandwidth;
  }

  /// The backward pass, and with it the releases, once everything that slows it is known.
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
  Timeline* timeline_ = nullptr;
  bool shared_ = true, credit_ends_early_ = false;
  double copy_ = 0;
  FlatCost both_, reduce_, distribute_;
  ComputeClock clock_;
  Flight flight_;
  std::array<Channel, 2> channel_;
  bool walks_layers_ = false;
  std::vector<double> arrival_;  ///< per layer: when the last message of which it is the lowest is back
  double iteration_ = 0, last_end_ = 0, under_way_ = 0, under_way_until_ = 0;
  std::uint64_t smallest_ = 0, largest_ = 0, events_ = 0;
  std::vector<double> reduced_;  ///< decoupled plans: when a message's reduce stage has ended
  std::vector<std::uint32_t> by_release_, by_rank_, counts_;
  RankSet waiting_;
};

Simulator::Simulator(const Workload& work) : engine_(std::make_unique<Engine>(work)) {}
Simulator::~Simulator() = default;

Prediction Simulator::run(const FlatPlan& plan, const RoadCost& cost, Timeline* timeline) {
  return engine_->run(plan, cost, timeline);
}

Prediction Simulator::run(const Plan& plan, const RoadCost& cost, Timeline* timeline) {
  return engine_->run(plan, cost, timeline);
}

std::uint64_t Simulator::events() const { return engine_->events(); }

Prediction simulate(const Workload& work, const Plan& plan, const RoadCost& cost, Timeline* timeline) {
  return Simulator{work}.run(plan, cost, timeline);
}

}  // namespace commtune
