#include "perfmodel/bound/batched_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "perfmodel/base/never.h"
#include "perfmodel/bound/bound_search.h"

namespace commtune {

namespace {

/// The bound that start-ups give: see batched_bound.h.
class BatchedBound {
 public:
  BatchedBound(const Workload& work, const BatchedChannel& channel)
      : channel_(channel), compute_(work.compute()) {
    double bytes = 0;
    for (std::size_t i = work.layers(); i-- > 0;) {
      if (work.layer_bytes[i] == 0) continue;
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
    const Passing& passing = channel_.passing;
    double feasible =
        cells_.back().ready + tail_.back() + passing.overhead + passing.lag + passing.beta * bytes;
    if (feasible <= known || reachable(known * (1 + kBoundPrecision))) return known;
    double ruled_out = known;
    while (feasible - ruled_out > kBoundPrecision * feasible) {
      const double middle = (ruled_out + feasible) / 2;
      (reachable(middle) ? feasible : ruled_out) = middle;
    }
    return ruled_out;
  }

 private:
  /// Parts of the stream. Finer ones bound more tightly, in a time that grows with their square.
  static constexpr int kCells = 96;

  /// Part of the stream of gradients, in the order in which they appear: bytes (begin, end].
  struct Cell {
    double begin, end;
    double ready;  ///< moment at which the first of them exists
    /// Least tail of the rest of the stream, if all bytes up to `end` are under way.
    double tail_after;
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

  /// When a message of so many bytes leaves the channel.
  double left(double start, double bytes) const {
    return start + channel_.passing.overhead + channel_.passing.beta * bytes;
  }

  /// Whether all bytes could be back in time.
  bool reachable(double time) {
    for (std::size_t b = 0; b < cells_.size(); ++b) {
      const Cell& last = cells_[b];
      double best = kNever;
      for (std::size_t a = b + 1; a-- > 0;) {  // the message takes cells a .. b
        const double sent = a == 0 ? 0 : cells_[a - 1].end,
                     tail = a == 0 ? tail_.back() : cells_[a - 1].tail_after;
        const double before = a == 0 ? 0 : served_[a - 1];
        // It may in truth end anywhere in cell b; its deadline is checked as if it ended where that begins.
        const double own = std::max(0.0, last.begin - sent), whole = last.end - sent;
        if (own > channel_.largest * stream_end_.back()) break;
        const double start = std::max(before, last.ready);
        if (left(start, own) + channel_.passing.lag + tail <= time) {
          best = std::min(best, left(start, whole));
        }
        // A longer message would start no earlier, end later and be more urgent.
        if (before <= last.ready) break;
      }
      served_[b] = best;
    }
    return served_.back() < kNever;
  }

  const BatchedChannel channel_;
  const double compute_;
  std::vector<double> stream_end_, tail_, ready_;  ///< per layer with gradients, last layer first
  std::vector<Cell> cells_;
  std::vector<double> served_;  ///< when the messages up to a cell have left, had they ended where it ends
};

}  // namespace

double batched_bound(const Workload& work, const BatchedChannel& channel, double known) {
  return BatchedBound{work, channel}.tightened(known);
}

}  // namespace commtune
