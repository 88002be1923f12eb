#include "perfmodel/bound/bound.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <numeric>
#include <vector>

#include "perfmodel/bound/batched_bound.h"
#include "perfmodel/bound/preemptive_bound.h"
#include "perfmodel/cost/least_cost.h"
#include "perfmodel/cost/stage_cost.h"

namespace commtune {

namespace {

/// True if both lines below a cost curve (Floor) are the same for every stage, so that one bound suffices.
bool floors_agree(const RoadCost& cost) {
  return std::ranges::all_of(
      std::array{&cost.both, &cost.reduce, &cost.distribute}, [](const StageCost* stage) {
        return least_cost(*stage, Floor::kStartUp) == least_cost(*stage, Floor::kBytes);
      });
}

/// Jobs of one machine, one for each layer with gradients. In seconds.
struct Jobs {
  std::vector<double> head, body, tail;
};

/// A job that has arrived, with the seconds of work that are left of it.
struct WaitingJob {
  double tail, left;
};

/// Jobs that have arrived, sorted by tail: the one with the longest tail is served. In a backward pass jobs
/// arrive with rising tails, so both ends of the work happen at the back and this is a stack. Jobs that
/// arrive in another order are sorted in.
class Waiting {
 public:
  bool empty() const { return by_tail_.empty(); }
  WaitingJob& most_urgent() { return by_tail_.back(); }
  void remove_most_urgent() { by_tail_.pop_back(); }
  void add(const WaitingJob& job) {
    auto place = by_tail_.end();
    while (place != by_tail_.begin() && job.tail < std::prev(place)->tail) --place;
    by_tail_.insert(place, job);
  }

 private:
  std::vector<WaitingJob> by_tail_;
};

/// Indices of jobs by rising heads. Layers are listed by falling heads, so that is mostly the reverse order.
std::vector<std::size_t> in_order_of(const std::vector<double>& head) {
  std::vector<std::size_t> order(head.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  const auto sooner = [&](std::size_t a, std::size_t b) { return head[a] < head[b]; };
  if (!std::is_sorted(order.begin(), order.end(), sooner))
    std::stable_sort(order.begin(), order.end(), sooner);
  return order;
}

/// Gradients as jobs of a channel on which a byte takes `beta` seconds. `before` and `after` are seconds that
/// each message spends elsewhere, before and after the channel.
Jobs jobs_of(const Workload& work, double beta, double before, double after) {
  Jobs jobs;
  for (std::size_t i = 0; i < work.layers(); ++i) {
    if (work.layer_bytes[i] == 0) continue;
    jobs.head.push_back(work.ready[i] + before);
    jobs.body.push_back(beta * static_cast<double>(work.layer_bytes[i]));
    jobs.tail.push_back(work.tail[i] + after);
  }
  return jobs;
}

double length(const Jobs& jobs) { return jackson(jobs.head, jobs.body, jobs.tail); }

/// While a channel is occupied, compute runs at 1/(1+kappa) of its speed: T >= work + occupied
/// kappa/(1+kappa).
double slowed_compute(const Workload& work, double kappa, double beta) {
  return work.compute() + beta * static_cast<double>(work.total_bytes) * kappa / (1 + kappa);
}

/// True if all compute of an iteration lies between two sums of the first layer that has gradients, so that
/// the job waits for its slowest worker.
bool waits_for_all_compute(const Workload& work) {
  std::size_t first = 0;
  while (work.layer_bytes[first] == 0) ++first;
  return work.ready[first] >= work.total_backward && work.tail[first] >= work.tail[0];
}

Passing passing_of(const LeastCost& least) {
  return {least.overhead, least.beta, least.latency - least.overhead};
}

/// The larger of `known` and what start-ups rule out (bounds 3 and 4).
double started_bound(const Workload& work, const BatchedChannel& channel, double known) {
  return urgency_bound(work, channel, batched_bound(work, channel, known));
}

/// elsewhere  seconds of latency on another channel that each message passes
PreemptiveChannel preemptive_channel_of(const LeastCost& least, double elsewhere) {
  return {least.overhead, least.beta, least.latency - least.overhead + elsewhere};
}

/// While a message waits between its rounds others may send. So of its latency (what it takes beyond keeping
/// the channel) only the last round's share is sure to come after its last byte.
LeastCost after_last_round(LeastCost least, double share) {
  least.latency = least.overhead + (least.latency - least.overhead) * share;
  return least;
}

/// Bound by a single message: every layer's gradients are carried by some message, which takes at least
/// `latency` seconds.
double alone_bound(const Workload& work, double latency) {
  double bound = work.compute();
  for (std::size_t i = 0; i < work.layers(); ++i) {
    if (work.layer_bytes[i] > 0) bound = std::max(bound, work.ready[i] + latency + work.tail[i]);
  }
  return bound;
}

/// Bound for messages that pass one channel in several rounds.
double rounds_bound(const Workload& work, const LeastCost& least, double last_share, double known) {
  const LeastCost last = after_last_round(least, last_share);
  const double bytes = length(jobs_of(work, last.beta, 0, last.latency));
  return preemptive_bound(work, preemptive_channel_of(last, 0), std::max(bytes, known));
}

/// Bound of a road whose stages share a channel. Plans may run the stages as one operation or apart, so the
/// smaller of the two bounds counts.
double shared_bound(const Workload& work, const RoadCost& cost, Floor floor) {
  const LeastCost both = least_cost(cost.both, floor);
  if (cost.rounds.both() == 1) {
    return started_bound(work, {passing_of(both), 1}, length(jobs_of(work, both.beta, 0, both.latency)));
  }
  const double coupled = rounds_bound(work, both, cost.rounds.last_share(), alone_bound(work, both.latency));
  if (cost.through_servers || !cost.may_part) return coupled;
  const LeastCost reduce = least_cost(cost.reduce, floor), distribute = least_cost(cost.distribute, floor);
  const LeastCost apart{reduce.latency + distribute.latency, reduce.beta + distribute.beta,
                        reduce.overhead + distribute.overhead};
  // None of the reduce's latency has to come after the last byte: others may be reduced first.
  const LeastCost last = after_last_round(distribute, cost.rounds.last_share(Stage::kDistribute));
  const LeastCost parted{apart.overhead + last.latency - last.overhead, apart.beta, apart.overhead};
  return std::min(coupled, rounds_bound(work, parted, 1, alone_bound(work, apart.latency)));
}

/// Bound of a road whose stages have a channel each.
double separate_bound(const Workload& work, const RoadCost& cost, Floor floor) {
  const LeastCost reduce = least_cost(cost.reduce, floor), distribute = least_cost(cost.distribute, floor);
  const double first = length(jobs_of(work, reduce.beta, 0, reduce.latency + distribute.latency));
  const double second = length(jobs_of(work, distribute.beta, reduce.latency, distribute.latency));
  const double known = std::max({first, second, work.compute()});
  return preemptive_bound(work, preemptive_channel_of(distribute, reduce.latency),
                          preemptive_bound(work, preemptive_channel_of(reduce, distribute.latency), known));
}

}  // namespace

double jackson(const std::vector<double>& head, const std::vector<double>& body,
               const std::vector<double>& tail) {
  assert(head.size() == body.size() && body.size() == tail.size());
  const std::vector<std::size_t> by_head = in_order_of(head);
  Waiting waiting;
  double now = 0, longest = 0;
  std::size_t next = 0;
  while (next < by_head.size() || !waiting.empty()) {
    if (waiting.empty()) now = std::max(now, head[by_head[next]]);
    for (; next < by_head.size() && head[by_head[next]] <= now; ++next) {
      waiting.add({tail[by_head[next]], body[by_head[next]]});
    }
    WaitingJob& job = waiting.most_urgent();
    if (next == by_head.size() || now + job.left <= head[by_head[next]]) {
      now += job.left;
      longest = std::max(longest, now + job.tail);
      waiting.remove_most_urgent();
    } else {
      job.left -= head[by_head[next]] - now;
      now = head[by_head[next]];
    }
  }
  return longest;
}

LowerBounds lower_bounds(const Workload& work, const RoadCost& cost) {
  const auto real = [&](double clock) { return Seconds{work.real(clock, work.compute())}; };
  if (work.total_bytes == 0) return {real(work.compute()), real(work.compute()) + cost.straggling};
  const auto bound_by = [&](Floor floor) {
    return cost.shared_channel ? shared_bound(work, cost, floor) : separate_bound(work, cost, floor);
  };
  double bound = bound_by(Floor::kBytes);
  if (!floors_agree(cost)) bound = std::max(bound, bound_by(Floor::kStartUp));
  const auto per_byte = [](const StageCost& stage) { return least_cost(stage, Floor::kBytes).beta; };
  const double beta = cost.shared_channel
                          ? std::min(per_byte(cost.both), per_byte(cost.reduce) + per_byte(cost.distribute))
                          : std::max(per_byte(cost.reduce), per_byte(cost.distribute));
  const double computing = slowed_compute(work, cost.interference, beta);
  // Out of step or not, the channel has to pass all bytes.
  const double bytes = beta * static_cast<double>(work.total_bytes);
  bound = std::max(bound - most_skew(cost, Bytes{work.total_bytes}).count(), std::min(bound, bytes));
  const Seconds late = waits_for_all_compute(work) ? work.lateness : Seconds{0};
  return {std::max(real(bound), real(computing) + late), real(std::max(bound, computing)) + cost.straggling};
}

Seconds lower_bound(const Workload& work, const RoadCost& cost) { return lower_bounds(work, cost).expected; }

}  // namespace commtune
