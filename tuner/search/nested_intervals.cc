#include "tuner/search/nested_intervals.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "perfmodel/fit/curve_ops.h"

namespace commtune::tuner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// A partial schedule: the first units are placed.
struct State {
  double left_end = 0;           ///< E
  double right_length = kNever;  ///< D; infinite marks an empty place
  std::uint16_t parent_units = 0;
  std::uint16_t parent_step = 0;
  Side side = Side::kLeft;
};

/// What a block costs on either side.
struct BlockCost {
  double left = 0, right = 0;         ///< both stages
  double left_lag = 0;                ///< ends this much after its channel is free
  double reduce = 0, distribute = 0;  ///< parted
  double distribute_lag = 0;
};

struct Asked {
  double kept, lag;
};

Asked ask(const StageCost& stage, Bytes bytes) {
  const double alone = stage.alone(bytes).count();
  const double kept = std::min(alone, stage.occupancy(bytes).count());
  return {kept, alone - kept};
}

BlockCost cost_of(const RoadCost& road, Bytes bytes, bool parted) {
  BlockCost cost;
  if (parted) {
    const Asked reduce = ask(road.reduce, bytes), distribute = ask(road.distribute, bytes);
    cost.reduce = reduce.kept;
    cost.distribute = distribute.kept;
    cost.distribute_lag = distribute.lag;
    cost.left = cost.right = reduce.kept + reduce.lag + distribute.kept;
    cost.left_lag = distribute.lag;
    return cost;
  }
  if (road.shared_channel) {
    const Asked both = ask(road.both, bytes);
    cost.left = cost.right = both.kept;
    cost.left_lag = both.lag;
    return cost;
  }
  // Two channels in a row: the slower one paces a stream, the other one adds its time once.
  const Asked reduce = ask(road.reduce, bytes), distribute = ask(road.distribute, bytes);
  cost.left = cost.right = std::max(reduce.kept, distribute.kept);
  cost.left_lag = reduce.kept + reduce.lag + distribute.kept + distribute.lag - cost.left;
  return cost;
}

class Program {
 public:
  Program(const std::vector<SearchUnit>& units, const RoadCost& road, double compute_end, double worst,
          const NestedIntervalOptions& options)
      : units_(units),
        road_(road),
        compute_end_(compute_end),
        worst_(worst),
        options_(options),
        states_((units.size() + 1) * options.steps),
        reached_(units.size() + 1),
        bytes_(units.size() + 1, 0) {
    for (std::size_t i = 0; i < units.size(); ++i) bytes_[i + 1] = bytes_[i] + units[i].bytes;
    const auto least = [](const StageCost& s) {
      return std::min(least_time_per_byte(s.alone), least_time_per_byte(s.occupancy)).value;
    };
    beta_ = options.parted        ? least(road.reduce) + least(road.distribute)
            : road.shared_channel ? least(road.both)
                                  : std::max(least(road.reduce), least(road.distribute));
  }

  std::vector<Block> run() {
    const std::size_t n = units_.size();
    const auto largest = static_cast<std::uint64_t>(options_.largest * static_cast<double>(bytes_.back()));
    offer(0, {0, 0, 0, 0, Side::kLeft});
    note_reached(0);
    for (std::size_t placed = 1; placed <= n; ++placed) {
      for (std::size_t before = placed; before-- > 0;) {
        if (before + 1 < placed && bytes_[placed] - bytes_[before] > largest) break;
        extend(before, placed);
      }
      note_reached(placed);
    }
    return trace(n);
  }

 private:
  /// The states that so many units can be in and that no other beats in both ends, by rising left end, and
  /// the best that any of them has.
  struct Reached {
    std::vector<std::uint16_t> steps;
    double left_end = kNever, right_length = kNever;
  };

  State& at(std::size_t placed, std::size_t step) { return states_[placed * options_.steps + step]; }

  /// After all ways to place so many units were offered.
  void note_reached(std::size_t placed) {
    Reached& reached = reached_[placed];
    for (std::size_t step = 0; step < options_.steps; ++step) {
      const State& state = at(placed, step);
      if (state.right_length >= reached.right_length) continue;
      reached.steps.push_back(static_cast<std::uint16_t>(step));
      reached.left_end = std::min(reached.left_end, state.left_end);
      reached.right_length = state.right_length;
    }
  }

  /// Whether a state with such ends, or with later ones, leads to anything faster than `worst_`.
  bool hopeful(std::size_t placed, double left_end, double right_length) const {
    const double rest = beta_ * static_cast<double>(bytes_.back() - bytes_[placed]);
    const double least =
        std::max(std::max(left_end, compute_end_) + right_length, left_end + right_length + rest);
    return least < worst_;
  }

  /// Keeps a state unless it cannot lead to anything faster than `worst_` or a better one has its place.
  void offer(std::size_t placed, const State& state) {
    if (!hopeful(placed, state.left_end, state.right_length)) return;
    const auto step = static_cast<std::size_t>(state.left_end / worst_ * static_cast<double>(options_.steps));
    State& kept = at(placed, std::min(step, options_.steps - 1));
    if (state.right_length < kept.right_length ||
        (state.right_length == kept.right_length && state.left_end < kept.left_end)) {
      kept = state;
    }
  }

  /// All ways to place units [before, placed) as one block.
  void extend(std::size_t before, std::size_t placed) {
    const SearchUnit& lowest = units_[placed - 1];
    const Reached& reached = reached_[before];
    if (reached.steps.empty()) return;
    const BlockCost cost = cost_of(road_, Bytes{bytes_[placed] - bytes_[before]}, options_.parted);
    // No state does better than one with the earliest ends of all: most blocks are ruled out by that at once.
    const double soonest = std::max(reached.left_end, lowest.ready);
    const double shortest = std::max(reached.right_length, lowest.tail + cost.left_lag);
    const bool left = hopeful(placed, soonest + cost.left, shortest);
    const bool right = hopeful(placed, reached.left_end, shortest + cost.right);
    const bool parted =
        options_.parted &&
        hopeful(placed, soonest + cost.reduce,
                std::max(reached.right_length, lowest.tail + cost.distribute_lag) + cost.distribute);
    if (!left && !right && !parted) return;
    for (const std::uint16_t step : reached.steps) {
      const State& from = at(before, step);
      State next = from;
      next.parent_units = static_cast<std::uint16_t>(before);
      next.parent_step = step;
      const double start = std::max(from.left_end, lowest.ready);

      if (left) {
        next.side = Side::kLeft;
        next.left_end = start + cost.left;
        next.right_length = std::max(from.right_length, lowest.tail + cost.left_lag);
        offer(placed, next);
      }
      if (right) {
        next.side = Side::kRight;
        next.left_end = from.left_end;
        next.right_length = std::max(from.right_length, lowest.tail + cost.left_lag) + cost.right;
        offer(placed, next);
      }
      if (!parted) continue;
      next.side = Side::kParted;
      next.left_end = start + cost.reduce;
      next.right_length = std::max(from.right_length, lowest.tail + cost.distribute_lag) + cost.distribute;
      offer(placed, next);
    }
  }

  std::vector<Block> trace(std::size_t n) {
    std::size_t best = 0;
    double fastest = kNever;
    for (std::size_t step = 0; step < options_.steps; ++step) {
      const State& state = at(n, step);
      const double time = std::max(state.left_end, compute_end_) + state.right_length;
      if (time < fastest) {
        fastest = time;
        best = step;
      }
    }
    std::vector<Block> blocks;
    if (fastest == kNever) return blocks;
    for (std::size_t placed = n, step = best; placed > 0;) {
      const State& state = at(placed, step);
      blocks.push_back({state.parent_units, placed - state.parent_units, state.side});
      placed = state.parent_units;
      step = state.parent_step;
    }
    std::reverse(blocks.begin(), blocks.end());
    return blocks;
  }

  const std::vector<SearchUnit>& units_;
  const RoadCost& road_;
  const double compute_end_, worst_;
  const NestedIntervalOptions options_;
  std::vector<State> states_;
  std::vector<Reached> reached_;
  std::vector<std::uint64_t> bytes_;
  double beta_ = 0;
};

}  // namespace

std::vector<Block> nested_interval_blocks(const std::vector<SearchUnit>& units, const RoadCost& cost,
                                          double compute_end, double worst,
                                          const NestedIntervalOptions& options) {
  if (units.empty() || !(worst > 0)) return {};
  return Program(units, cost, compute_end, worst, options).run();
}

}  // namespace commtune::tuner
