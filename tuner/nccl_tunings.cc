#include "tuner/nccl_tunings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "perfmodel/base/normal.h"
#include "perfmodel/cost/prediction_limits.h"

namespace commtune::tuner {

namespace {

/// Steps of a doubling of the size at which tunings are compared; where they change places is then found to
/// the byte.
constexpr int kStepsOfADoubling = 4;

using Fits = std::vector<const NcclFit*>;

std::optional<NcclCollective> collective_of(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return NcclCollective::kAllReduce;
    case Operation::kReduceScatter:
      return NcclCollective::kReduceScatter;
    case Operation::kAllGather:
      return NcclCollective::kAllGather;
    case Operation::kPushPull:
    case Operation::kPush:
    case Operation::kPull:
      break;
  }
  return std::nullopt;
}

/// Hosts of the first `workers` ranks.
int nodes_of(const Cluster& cluster, int workers) {
  int nodes = 0, ranks = 0;
  for (const Host& host : cluster.hosts) {
    if (ranks >= workers) break;
    ranks += host.slots;
    ++nodes;
  }
  return nodes;
}

/// One collective among so many ranks.
class Comparison {
 public:
  Comparison(const Fit& own, Fits fits) : own_(own), fits_(std::move(fits)) {}

  std::vector<NcclRange> ranges() const {
    std::vector<NcclRange> ranges;
    Bytes first = own_.smallest, last = first;
    const NcclFit* best = fastest(first);
    for (int step = 1; step <= steps(); ++step) {
      const Bytes size = at_step(step);
      while (fastest(size) != best) {
        last = last_of(best, last, size);
        add(ranges, first, last, best);
        first = last = Bytes{last.count + 1};
        best = fastest(first);
      }
      last = size;
    }
    add(ranges, first, own_.largest, best);
    return ranges;
  }

 private:
  Bytes at_step(int step) const {
    const double factor = std::exp2(static_cast<double>(step) / kStepsOfADoubling);
    const double size = static_cast<double>(own_.smallest.count) * factor;
    return std::min(Bytes{static_cast<std::uint64_t>(size)}, own_.largest);
  }
  int steps() const {
    const double ratio = static_cast<double>(own_.largest.count) /
                         static_cast<double>(std::max(own_.smallest.count, std::uint64_t{1}));
    return static_cast<int>(std::ceil(std::log2(ratio) * kStepsOfADoubling));
  }
  /// The last size at which it is the fastest, of those from low, at which it is, to high, at which it is
  /// not.
  Bytes last_of(const NcclFit* best, Bytes low, Bytes high) const {
    while (high.count - low.count > 1) {
      const Bytes middle{low.count + (high.count - low.count) / 2};
      (fastest(middle) == best ? low : high) = middle;
    }
    return low;
  }

  /// Whether one takes less time than another by more than the doubt in both: in 95 of 100 cases.
  static bool is_told_faster(const Fit& one, const Fit& other, Bytes size) {
    const double doubt =
        kNormal95 * std::hypot(standard_error(one, size).count(), standard_error(other, size).count());
    return one.curve(size).count() + doubt < other.curve(size).count();
  }

  /// nullptr: NCCL's own choice.
  const NcclFit* fastest(Bytes size) const {
    const NcclFit* least = nullptr;
    for (const NcclFit* fit : fits_) {
      if (!fit->alone.covers(size) || !is_told_faster(fit->alone, own_, size)) continue;
      if (least == nullptr || fit->alone.curve(size) < least->alone.curve(size)) least = fit;
    }
    if (least == nullptr) return nullptr;
    // By channels first, of which 0 is NCCL's own number.
    const auto order = [](const NcclFit& fit) {
      return std::tuple(fit.tuning.channels, fit.tuning.algorithm, fit.tuning.protocol);
    };
    const NcclFit* chosen = least;
    for (const NcclFit* fit : fits_) {
      const bool as_fast = fit->alone.covers(size) && is_told_faster(fit->alone, own_, size) &&
                           !is_told_faster(least->alone, fit->alone, size);
      if (as_fast && order(*fit) < order(*chosen)) chosen = fit;
    }
    return chosen;
  }

  static void add(std::vector<NcclRange>& ranges, Bytes first, Bytes last, const NcclFit* best) {
    if (best != nullptr) ranges.push_back({first, last, best->tuning, best->alone.curve(last)});
  }

  const Fit& own_;
  Fits fits_;
};

}  // namespace

NcclTuningTable nccl_tunings(const Cluster& cluster) {
  std::map<std::pair<Operation, int>, Fits> groups;
  for (const NcclFit& fit : cluster.nccl) groups[{fit.operation, fit.workers}].push_back(&fit);
  NcclTuningTable table;
  for (auto& [group, fits] : groups) {
    const auto [operation, workers] = group;
    const auto collective = collective_of(operation);
    const auto own =
        std::ranges::find_if(fits, [](const NcclFit* fit) { return fit->tuning.is_own_choice(); });
    if (!collective || own == fits.end()) continue;
    const Fit& own_fit = (*own)->alone;
    fits.erase(own);
    const Comparison comparison(own_fit, std::move(fits));
    table.choices.push_back({*collective, workers, nodes_of(cluster, workers), comparison.ranges()});
  }
  return table;
}

}  // namespace commtune::tuner
