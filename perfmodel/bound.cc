#include "perfmodel/bound.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>

namespace commtune {

namespace {

/// Least cost that any message of a stage has: it keeps its channel for at least beta * m, and whatever goes
/// last ends at least `latency` after its last byte was served.
struct Least {
  double latency = 0, beta = 0;
  double overhead = 0;  ///< of the channel, per message
};

Least least_of(const StageCost& cost) {
  Least least;
  least.beta = std::min(cost.occupancy.least_beta().value, cost.alone.least_beta().value);
  least.latency = cost.alone.least_alpha().count();
  least.overhead = std::min(least.latency, cost.occupancy.least_alpha().count());
  return least;
}

/// Jobs of one machine: one per layer with gradients.
struct Jobs {
  std::vector<double> head, body, tail;
};

/// Gradients as jobs of a channel on which a byte takes `beta`, with what comes before and after.
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

/// One channel on which each message costs a start-up, and what follows it.
struct BatchedChannel {
  double overhead = 0, beta = 0;  ///< a message keeps the channel for at least overhead + beta * m
  double lag = 0;                 ///< and is back no earlier than this plus then_beta * m later
  double then_beta = 0;
  bool then_queues = false;  ///< what follows is a channel too, which all later messages pass as well
  double largest = 1;        ///< no message carries more than this part of all that the channel has to do
};

/// The bound that start-ups give: see lower_bound.
class BatchedBound {
 public:
  BatchedBound(const Workload& work, const BatchedChannel& channel)
      : channel_(channel), compute_(work.compute()) {
    double bytes = 0;
    for (std::size_t i = work.layers(); i-- > 0;) {
      if (work.layer_bytes[i] == 0) continue;
      if (stream_end_.empty()) least_tail_ = work.tail[i];
      bytes += static_cast<double>(work.layer_bytes[i]);
      stream_end_.push_back(bytes);
      tail_.push_back(work.tail[i]);
      ready_.push_back(work.ready[i]);
    }
    divide(bytes / kCells);
    served_.resize(cells_.size());
  }

  /// The least T in [known, ...) that is not ruled out, given that everything below `known` is.
  double tightened(double known) {
    const double bytes = stream_end_.back();
    double feasible = cells_.back().ready + channel_.overhead + channel_.lag +
                      (channel_.beta + channel_.then_beta) * bytes + tail_.back();
    if (feasible <= known || reachable(known * (1 + kPrecision))) return known;
    double ruled_out = known;
    while (feasible - ruled_out > kPrecision * feasible) {
      const double middle = (ruled_out + feasible) / 2;
      (reachable(middle) ? feasible : ruled_out) = middle;
    }
    return ruled_out;
  }

 private:
  static constexpr double kPrecision = 5e-4;
  static constexpr int kCells = 96;

  /// Part of the stream of gradients, in the order in which they appear: bytes (begin, end].
  struct Cell {
    double begin, end;
    double ready;  ///< the first of them exists
    double
        tail_after;  ///< if all up to `end` are under way, the rest of the stream has a tail of at least this
  };

  /// Cells of whole layers or parts of one, none much larger than `most`.
  void divide(double most) {
    double begin = 0;
    for (std::size_t i = 0; i < stream_end_.size(); ++i) {
      const double size = stream_end_[i] - begin;
      const bool last = i + 1 == stream_end_.size();
      if (size < most && !last && ready_[i + 1] - ready_[first_layer(begin)] < compute_ / kCells) continue;
      const auto parts = std::max(1.0, std::floor(size / most));
      const double from = begin;
      for (double part = 0; part < parts; ++part) {
        const double end = part + 1 == parts ? stream_end_[i] : from + size * (part + 1) / parts;
        cells_.push_back({begin, end, ready_[first_layer(begin)], 0});
        begin = end;
      }
    }
    for (Cell& cell : cells_) cell.tail_after = tail_of_rest(cell.end);
  }

  std::size_t first_layer(double after) const {
    const auto found = std::upper_bound(stream_end_.begin(), stream_end_.end(), after);
    return static_cast<std::size_t>(std::min(found, stream_end_.end() - 1) - stream_end_.begin());
  }

  /// The largest tail among the `total - sent` bytes of smallest tail: the rest contains no less urgent a
  /// byte.
  double tail_of_rest(double sent) const {
    const double rest = stream_end_.back() - sent;
    const auto found = std::lower_bound(stream_end_.begin(), stream_end_.end(), rest * (1 - 1e-12));
    return tail_[static_cast<std::size_t>(std::min(found, stream_end_.end() - 1) - stream_end_.begin())];
  }

  /// When a message that follows `sent` bytes must have left the channel, but for what depends on its own
  /// size.
  double deadline(double time, double sent, double tail, double own) const {
    const double own_way = time - channel_.lag - channel_.then_beta * own - tail;
    if (!channel_.then_queues) return own_way;
    return std::min(own_way,
                    time - channel_.lag - channel_.then_beta * (stream_end_.back() - sent) - least_tail_);
  }

  /// Whether all bytes could be back in time. `served_[b]`: the earliest end of messages up to cell b.
  bool reachable(double time) {
    for (std::size_t b = 0; b < cells_.size(); ++b) {
      const Cell& last = cells_[b];
      double best = std::numeric_limits<double>::infinity();
      for (std::size_t a = b + 1; a-- > 0;) {  // the message takes cells a .. b
        const double sent = a == 0 ? 0 : cells_[a - 1].end,
                     tail = a == 0 ? tail_.back() : cells_[a - 1].tail_after;
        const double free = a == 0 ? 0 : served_[a - 1];
        const double start = std::max(free, last.ready) + channel_.overhead;
        // It may in truth end anywhere in cell b; its deadline is checked as if it ended where that begins.
        const double own = std::max(0.0, last.begin - sent);
        if (own > channel_.largest * stream_end_.back()) break;
        if (start + channel_.beta * own <= deadline(time, sent, tail, own)) {
          best = std::min(best, start + channel_.beta * (last.end - sent));
        }
        if (free <= last.ready) break;  // a longer message starts no earlier, ends later and is more urgent
      }
      served_[b] = best;
    }
    return served_.back() < std::numeric_limits<double>::infinity();
  }

  const BatchedChannel channel_;
  const double compute_;
  std::vector<double> stream_end_, tail_, ready_;  ///< per layer with gradients, last layer first
  double least_tail_ = 0;
  std::vector<Cell> cells_;
  std::vector<double> served_;
};

/// Bounds of a road whose stages share a channel, as one operation or parted: whichever is smaller counts.
double shared_bound(const Workload& work, const RoadCost& cost) {
  const Least both = least_of(cost.both), reduce = least_of(cost.reduce),
              distribute = least_of(cost.distribute);
  const double together = length(jobs_of(work, both.beta, 0, both.latency));
  const double coupled =
      BatchedBound{work, {both.overhead, both.beta, both.latency - both.overhead}}.tightened(together);
  if (!cost.may_part) return coupled;
  // The latency of a reduce can hide behind other messages, its overhead cannot.
  const double beta = reduce.beta + distribute.beta;
  const double apart = length(jobs_of(work, beta, 0, reduce.overhead + distribute.latency));
  if (apart >= coupled) return coupled;
  if (beta == 0) return apart;
  BatchedChannel parts;
  parts.overhead = std::min(reduce.overhead, distribute.overhead);
  parts.beta = beta;
  parts.lag = distribute.latency - distribute.overhead;
  parts.largest = std::max(reduce.beta, distribute.beta) / beta;
  return std::min(coupled, BatchedBound{work, parts}.tightened(apart));
}

/// Bounds of a road with a channel for each stage.
double separate_bound(const Workload& work, const RoadCost& cost) {
  const Least reduce = least_of(cost.reduce), distribute = least_of(cost.distribute);
  const double first = length(jobs_of(work, reduce.beta, 0, reduce.latency + distribute.latency));
  const double second = length(jobs_of(work, distribute.beta, reduce.latency, distribute.latency));
  BatchedChannel channel;
  channel.overhead = reduce.overhead;
  channel.beta = reduce.beta;
  channel.lag = reduce.latency - reduce.overhead + distribute.latency;
  channel.then_beta = distribute.beta;
  channel.then_queues = true;
  return BatchedBound{work, channel}.tightened(std::max(first, second));
}

}  // namespace

double jackson(const std::vector<double>& head, const std::vector<double>& body,
               const std::vector<double>& tail) {
  assert(head.size() == body.size() && body.size() == tail.size());
  std::vector<std::size_t> by_head(head.size());
  std::iota(by_head.begin(), by_head.end(), std::size_t{0});
  std::stable_sort(by_head.begin(), by_head.end(),
                   [&](std::size_t a, std::size_t b) { return head[a] < head[b]; });

  struct Waiting {
    double tail, left;
    bool operator<(const Waiting& other) const { return tail < other.tail; }
  };
  std::priority_queue<Waiting> waiting;
  double now = 0, longest = 0;
  std::size_t next = 0;
  while (next < by_head.size() || !waiting.empty()) {
    if (waiting.empty()) now = std::max(now, head[by_head[next]]);
    for (; next < by_head.size() && head[by_head[next]] <= now; ++next) {
      waiting.push({tail[by_head[next]], body[by_head[next]]});
    }
    Waiting job = waiting.top();
    waiting.pop();
    if (next == by_head.size() || now + job.left <= head[by_head[next]]) {
      now += job.left;
      longest = std::max(longest, now + job.tail);
    } else {
      job.left -= head[by_head[next]] - now;
      now = head[by_head[next]];
      waiting.push(job);
    }
  }
  return longest;
}

Seconds lower_bound(const Workload& work, const RoadCost& cost) {
  const auto real = [&](double clock) { return Seconds{work.real(clock, work.compute())} + cost.straggling; };
  if (work.total_bytes == 0) return real(work.compute());
  const double bound = cost.shared_channel ? shared_bound(work, cost) : separate_bound(work, cost);
  const double beta =
      cost.shared_channel
          ? std::min(least_of(cost.both).beta, least_of(cost.reduce).beta + least_of(cost.distribute).beta)
          : std::max(least_of(cost.reduce).beta, least_of(cost.distribute).beta);
  const double slowed = slowed_compute(work, cost.interference, beta);
  return real(std::max({bound, slowed, work.compute()}));
}

}  // namespace commtune
