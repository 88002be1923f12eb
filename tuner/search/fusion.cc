#include "tuner/search/fusion.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "perfmodel/cost/flat_cost.h"

namespace commtune::tuner {

namespace {

struct Choice {
  double end = std::numeric_limits<double>::infinity();
  std::size_t size = 0;
};

/// Bytes of the first tensors, by their number: whole numbers, of which a double holds any that is met.
std::vector<double> bytes_until(const FusionJob& job) {
  std::vector<double> until{0};
  until.reserve(job.bytes.size() + 1);
  for (const std::uint64_t bytes : job.bytes) until.push_back(until.back() + static_cast<double>(bytes));
  return until;
}

/// What groups behind neighbouring prefixes end after at least, a run of prefixes at a time. On one piece of
/// the curve a group that ends at a given tensor costs alpha + beta * (bytes up to there - bytes of the
/// prefix), so that of the prefixes only E - beta * bytes matters, whichever tensor it is that is asked
/// about.
class PrefixRuns {
 public:
  /// Prefixes. Of longer runs fewer can be left out as a whole; shorter ones are more to look at.
  static constexpr std::size_t kRun = 64;

  explicit PrefixRuns(const FlatCurve& curve, std::size_t prefixes)
      : curve_(curve), latest_(prefixes / kRun + 1, 0.0), least_(curve.pieces().size()) {
    for (std::vector<double>& least : least_)
      least.assign(latest_.size(), std::numeric_limits<double>::infinity());
  }

  /// Prefixes come in order.
  void add(std::size_t prefix, double end, double bytes) {
    const std::size_t run = prefix / kRun;
    latest_[run] = std::max(latest_[run], end);
    for (std::size_t piece = 0; piece < least_.size(); ++piece) {
      double& least = least_[piece][run];
      least = std::min(least, end - curve_.pieces()[piece].beta * bytes);
    }
  }

  /// When the last of a run's prefixes ends.
  double latest(std::size_t run) const { return latest_[run]; }

  /// No group of `piece` behind a prefix of the run and up to `bytes` ends before that, however the sums are
  /// rounded.
  double least_end(std::size_t run, std::size_t piece, double bytes) const {
    const FlatCurve::Piece& line = curve_.pieces()[piece];
    const double most = latest_[run] + line.alpha + 2 * line.beta * bytes;
    return least_[piece][run] + (line.alpha + line.beta * bytes) - kRounding * most;
  }

 private:
  static constexpr double kRounding = 1e-14;  // of six sums and products
  const FlatCurve& curve_;
  std::vector<double> latest_;              ///< by run
  std::vector<std::vector<double>> least_;  ///< by piece and run
};

/// Looks for the best last group of the first `count` tensors, given when shorter prefixes end; of several
/// the smallest. Where start-ups are dear nearly every pair of a prefix and a group could be the best one:
/// whole runs of prefixes are left out that lead to nothing as good as what is known.
class LastGroup {
 public:
  LastGroup(const FusionJob& job, const FlatCurve& curve, const std::vector<double>& prefix_end,
            const std::vector<double>& until, const PrefixRuns& runs, std::size_t count)
      : ready_(job.ready[count - 1]),
        curve_(curve),
        runs_(runs),
        prefix_end_(prefix_end.data()),
        until_(until.data()),
        count_(count) {}

  /// Of the groups that could start as soon as they are ready only the shortest is looked at, since it lasts
  /// no longer; a group behind a prefix that ends too late for any group, and so all shorter ones, are left
  /// out.
  Choice best() && {
    auto prefix =
        static_cast<std::size_t>(std::upper_bound(prefix_end_, prefix_end_ + count_, ready_) - prefix_end_);
    const double bytes = until_[count_] - until_[prefix - 1];
    best_ = {std::max(prefix_end_[prefix - 1], ready_) + curve_(bytes), count_ - prefix + 1};
    const auto& pieces = curve_.pieces();
    for (std::size_t piece = pieces.size(); piece-- > 0 && prefix < count_;) {
      // Its bytes are whole numbers, and so is each difference of them.
      const double last = until_[count_] - pieces[piece].from;
      const double* const beyond = std::upper_bound(until_ + prefix, until_ + count_, last);
      const auto end = static_cast<std::size_t>(beyond - until_);
      if (!look_at(prefix, end, piece)) break;
      prefix = end;
    }
    return best_;
  }

 private:
  double end_behind(std::size_t prefix, const FlatCurve::Piece& piece) const {
    return prefix_end_[prefix] + (piece.alpha + piece.beta * (until_[count_] - until_[prefix]));
  }

  bool too_late(std::size_t prefix) const { return prefix_end_[prefix] + curve_.start_up() > best_.end; }

  /// False when the prefix ends too late for any group.
  bool offer(std::size_t prefix, double end) {
    if (too_late(prefix)) return false;
    if (end <= best_.end) best_ = {end, count_ - prefix};
    return true;
  }

  /// The groups behind some prefixes, all of whose sizes are on one piece of the curve. False when the last
  /// that was looked at ends too late for any group.
  bool look_at(std::size_t prefix, std::size_t end, std::size_t piece) {
    while (prefix < end) {
      const std::size_t run = prefix / PrefixRuns::kRun;
      const std::size_t run_end = std::min((run + 1) * PrefixRuns::kRun, end);
      if (!may_be_best(run, piece)) {
        prefix = run_end;
        continue;
      }
      for (; prefix < run_end; ++prefix)
        if (!offer(prefix, end_behind(prefix, curve_.pieces()[piece]))) return false;
    }
    return true;
  }

  bool may_be_best(std::size_t run, std::size_t piece) const {
    return runs_.latest(run) + curve_.start_up() > best_.end ||
           runs_.least_end(run, piece, until_[count_]) <= best_.end;
  }

  const double ready_;
  const FlatCurve& curve_;
  const PrefixRuns& runs_;
  const double *const prefix_end_, *const until_;
  const std::size_t count_;
  Choice best_;
};

}  // namespace

Groups exact_fusion(const FusionJob& job, const FusionCost& cost) {
  const std::size_t n = job.ready.size();
  if (n == 0) return {};
  std::vector<double> prefix_end(n, 0.0);
  std::vector<std::size_t> last_size(n, 0);
  const std::vector<double> until = bytes_until(job);
  const FlatCurve occupancy(cost.occupancy), alone(cost.alone);
  PrefixRuns runs(occupancy, n), last_runs(alone, n);
  const auto add = [&](std::size_t prefix) {
    for (PrefixRuns* each : {&runs, &last_runs}) each->add(prefix, prefix_end[prefix], until[prefix]);
  };
  add(0);
  for (std::size_t count = 1; count < n; ++count) {
    const Choice best = LastGroup(job, occupancy, prefix_end, until, runs, count).best();
    prefix_end[count] = best.end;
    last_size[count] = best.size;
    add(count);
  }
  Groups groups{LastGroup(job, alone, prefix_end, until, last_runs, n).best().size};
  for (std::size_t left = n - groups.back(); left > 0; left -= groups.back())
    groups.push_back(last_size[left]);
  std::reverse(groups.begin(), groups.end());
  return groups;
}

Groups mg_wfbp_fusion(const FusionJob& job, double a, double b) {
  Groups groups;
  double channel_free = 0, start = 0, bytes = 0;
  for (std::size_t i = 0; i < job.ready.size(); ++i) {
    const double ready = job.ready[i];
    const double time = a + b * bytes;
    const bool joins = !groups.empty() && ready < start + time && (ready < start || ready - start < a);
    if (joins) {
      ++groups.back();
      bytes += static_cast<double>(job.bytes[i]);
    } else {
      if (!groups.empty()) channel_free = start + time;
      groups.push_back(1);
      bytes = static_cast<double>(job.bytes[i]);
    }
    start = std::max(channel_free, ready);
  }
  return groups;
}

LatencyLine mg_wfbp_line(const Curve& cost) {
  constexpr int kSizes = 63;  // up to 2016 KiB, as its authors have them
  double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (int i = 1; i <= kSizes; ++i) {
    const Bytes size{static_cast<std::uint64_t>(i) * (32_KiB).count};
    const double x = static_cast<double>(size.count), y = cost(size).count();
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  const double b = std::max(0.0, (kSizes * sum_xy - sum_x * sum_y) / (kSizes * sum_xx - sum_x * sum_x));
  return {std::max(0.0, (sum_y - b * sum_x) / kSizes), b};
}

}  // namespace commtune::tuner
