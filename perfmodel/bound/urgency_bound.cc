#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "perfmodel/bound/batched_bound.h"

#include "perfmodel/bound/bound_search.h"

namespace commtune {

namespace {

/// Parts of the gradients, by bytes, between which the messages before the moment may end. As the two below,
/// more would bound more tightly and take longer; the bound holds for any.
constexpr double kCells = 128;
/// Layers whose moment is looked at.
constexpr std::size_t kMoments = 12;
/// Start-ups that are counted after it: more of them are taken to be possible.
constexpr int kMostMessages = 64;

/// Layers with gradients, in forward order.
struct Front {
  std::vector<double> until, tail, ready;  ///< bytes up to and with the layer

  explicit Front(const Workload& work) {
    double bytes = 0;
    for (std::size_t i = 0; i < work.layers(); ++i) {
      if (work.layer_bytes[i] == 0) continue;
      bytes += static_cast<double>(work.layer_bytes[i]);
      until.push_back(bytes);
      tail.push_back(work.tail[i]);
      ready.push_back(work.ready[i]);
    }
  }
  double bytes() const { return until.back(); }
  std::size_t layers() const { return until.size(); }
  /// Of the byte at this place, counted from the first layer; the least of all beyond the last.
  double tail_at(double place) const {
    const auto found = std::upper_bound(until.begin(), until.end(), place * (1 + 1e-12));
    return tail[static_cast<std::size_t>(std::min(found, until.end() - 1) - until.begin())];
  }
};

/// Messages that carry all bytes up to some place of the stream of gradients, counted from the last layer: as
/// early as they can leave the channel, had they ended where the cell does.
struct Cell {
  double begin = 0, end = 0;
  double left = 0;
};

class UrgencyBound {
 public:
  UrgencyBound(const Workload& work, const BatchedChannel& channel)
      : front_(work), passing_(channel.passing) {
    fill_cells(work.compute());
  }

  double tightened(double known) const {
    const std::size_t n = front_.layers();
    for (std::size_t i = 0; i < std::min(kMoments, n); ++i) {
      // Evenly over the layers that appear last; the very last one first.
      const std::size_t layer = n <= kMoments ? i : i * i * (n - 1) / ((kMoments - 1) * (kMoments - 1));
      known = tightened_at(layer, known);
    }
    return known;
  }

 private:
  double ready_of(double place_in_stream) const {
    const double place = front_.bytes() - place_in_stream;  // from the front: the layer that holds the byte
    const auto found = std::lower_bound(front_.until.begin(), front_.until.end(), place * (1 - 1e-12));
    return front_
        .ready[static_cast<std::size_t>(std::min(found, front_.until.end() - 1) - front_.until.begin())];
  }

  /// Neighbouring layers, or parts of one: none much larger, nor appearing over a longer time, than a
  /// kCells-th of everything.
  void fill_cells(double compute) {
    const double most = front_.bytes() / kCells;
    cells_.push_back({});
    double begin = 0;
    for (std::size_t layer = front_.layers(); layer-- > 0;) {
      const double end = layer > 0 ? front_.bytes() - front_.until[layer - 1] : front_.bytes();
      const double size = end - begin;
      const bool joins =
          layer > 0 && size < most && front_.ready[layer - 1] - ready_of(begin) < compute / kCells;
      if (joins) continue;
      const double parts = std::max(1.0, std::floor(size / most)), from = begin;
      for (double part = 0; part < parts; ++part) {
        const double until = part + 1 == parts ? end : from + size * (part + 1) / parts;
        cells_.push_back({begin, until, 0});
        begin = until;
      }
    }
    for (std::size_t b = 1; b < cells_.size(); ++b) arrive(b);
  }

  /// The earliest way to have sent what lies before the end of a cell.
  void arrive(std::size_t b) {
    Cell& last = cells_[b];
    const double ready = ready_of(last.begin);
    last.left = std::numeric_limits<double>::infinity();
    for (std::size_t a = b; a-- > 0;) {  // the last message carries what lies between
      const Cell& before = cells_[a];
      const double start = std::max(before.left, ready);
      last.left = std::min(last.left, start + passing_.overhead + passing_.beta * (last.end - before.end));
      if (before.left <= ready) break;
    }
  }

  double tightened_at(std::size_t layer, double known) const {
    if (possible(layer, known * (1 + kBoundPrecision))) return known;
    double ruled_out = known, open = 2 * known;
    while (!possible(layer, open)) open *= 2;
    while (open - ruled_out > kBoundPrecision * open) {
      const double middle = (ruled_out + open) / 2;
      (possible(layer, middle) ? open : ruled_out) = middle;
    }
    return ruled_out;
  }

  /// Whether all could be back in time.
  bool possible(std::size_t layer, double time) const {
    const double latest = front_.bytes() - front_.until[layer];  // nothing beyond this exists yet
    for (const Cell& cell : cells_) {
      if (cell.begin > 0 && cell.begin >= latest) break;
      if (possible_after(cell, layer, time)) return true;
    }
    return false;
  }

  /// The same if what was sent before the moment ends in this cell.
  bool possible_after(const Cell& cell, std::size_t layer, double time) const {
    const double width = cell.end - cell.begin;
    const double sent = cell.left - passing_.beta * width;
    if (sent + passing_.lag > time - front_.tail.front() && cell.end > 0) return false;
    const double start = std::max(sent, front_.ready[layer]);
    const double rest = front_.bytes() - cell.end;
    double done = 0;
    for (int message = 1; message <= kMostMessages; ++message) {
      const double place = done < front_.until[layer] ? done : done + cell.end;
      const double deadline = time - front_.tail_at(place) - passing_.lag;
      const double reach = ratio(deadline - start - message * passing_.overhead, passing_.beta);
      if (reach >= rest) return true;
      if (!(reach > done)) return false;
      done = reach;
    }
    return true;
  }

  /// Bytes that pass in so much time; none where there is none left.
  static double ratio(double time, double beta) {
    if (time < 0) return -1;
    return beta > 0 ? time / beta : std::numeric_limits<double>::infinity();
  }

  const Front front_;
  const Passing passing_;
  std::vector<Cell> cells_;
};

}  // namespace

double urgency_bound(const Workload& work, const BatchedChannel& channel, double known) {
  if (!(known > 0)) return known;
  return UrgencyBound{work, channel}.tightened(known);
}

}  // namespace commtune
