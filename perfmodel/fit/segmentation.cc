#include "perfmodel/fit/segmentation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "perfmodel/base/normal.h"

namespace commtune {

namespace {

constexpr std::size_t kLeastSizes = 3;  // distinct sizes in a piece: two would fit any line
constexpr std::size_t kMostCuts = 100;  // candidates for a piece's begin: time grows with their square
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Weighted least squares with weights w, alpha and beta not negative.
Line weighted_line(std::span<const FitPoint> points, std::span<const double> weights) {
  double w = 0, wx = 0, wy = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    w += weights[i];
    wx += weights[i] * points[i].size;
    wy += weights[i] * points[i].time;
  }
  const double mean_x = wx / w, mean_y = wy / w;
  double sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double dx = points[i].size - mean_x;
    sxx += weights[i] * dx * dx;
    sxy += weights[i] * dx * (points[i].time - mean_y);
  }
  const double beta = sxx > 0 ? sxy / sxx : 0;
  if (beta < 0) {
    return {mean_y, 0};
  }
  if (mean_y - beta * mean_x >= 0) {
    return {mean_y - beta * mean_x, beta};
  }
  // Through the origin: sum w x y / sum w x^2.
  return {0, (sxy + w * mean_x * mean_y) / (sxx + w * mean_x * mean_x)};
}

/// A piece that the search may choose: points [begin, end) with their line and loss.
struct Segment {
  std::size_t begin = 0, end = 0;
  Line line;
  double loss = 0;
};

double total_loss(std::span<const FitPoint> points, const Line& line, double sigma) {
  double loss = 0;
  for (const FitPoint& point : points) {
    loss += outlier_proof_loss(residual(point, line) / sigma);
  }
  return loss;
}

/// May `after` follow `before` at the cut between the points cut - 1 and cut?
bool may_follow(std::span<const FitPoint> points, const Line& before, const Line& after, std::size_t cut) {
  const double from = takeover(before, after, points[cut - 1].size, points[cut].size);
  return after(from) >= before(from);
}

/// Do as many distinct sizes of the part as a piece needs speak for their own line and against the other one?
/// An outlier alone cannot, and of a piece after a jump only the first few points may see the jump, so each
/// need speak but softly: the margin is where, in trials, outliers of any size no longer bought a piece (of
/// 7000 fits none went wrong, without this rule 160 did) and jumps were still found.
bool supported(std::span<const FitPoint> part, const Line& own, const Line& other, double sigma) {
  constexpr double kMargin = 0.5;
  std::size_t supporters = 0;
  double last_size = -1;
  for (const FitPoint& point : part) {
    const double gain =
        outlier_proof_loss(residual(point, other) / sigma) - outlier_proof_loss(residual(point, own) / sigma);
    if (gain > kMargin && point.size > last_size) {
      last_size = point.size;
      if (++supporters == kLeastSizes) {
        return true;
      }
    }
  }
  return false;
}

/// Where pieces may begin or end: 0, the number of points, and between them where the size changes, thinned
/// out to kMostCuts.
std::vector<std::size_t> possible_cuts(std::span<const FitPoint> points) {
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].size > points[i - 1].size) {
      all.push_back(i);
    }
  }
  const std::size_t stride = (all.size() + kMostCuts - 1) / kMostCuts;
  std::vector<std::size_t> cuts{0};
  for (std::size_t i = 0; i < all.size(); i += std::max<std::size_t>(stride, 1)) {
    cuts.push_back(all[i]);
  }
  cuts.push_back(points.size());
  return cuts;
}

std::size_t distinct_sizes(std::span<const FitPoint> points) {
  std::size_t count = points.empty() ? 0 : 1;
  for (std::size_t i = 1; i < points.size(); ++i) {
    count += points[i].size > points[i - 1].size ? 1 : 0;
  }
  return count;
}

/// The search for one rule (feasible followers only, or any): best chains of k segments.
class Search {
 public:
  Search(std::span<const FitPoint> points, std::vector<Segment> segments, double sigma, bool feasible_only)
      : points_(points), segments_(std::move(segments)), sigma_(sigma), feasible_only_(feasible_only) {
    by_end_.resize(points.size() + 1);
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      by_end_[segments_[s].end].push_back(s);
    }
    // Chains of one segment begin at the first point.
    std::vector<Chain> first(segments_.size());
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      first[s].loss = segments_[s].begin == 0 ? segments_[s].loss : kInfinity;
    }
    chains_.push_back(std::move(first));
  }

  /// The best cut into `pieces` pieces; empty if there is none. To be called for 1, 2, ... in turn.
  Segmentation best(std::size_t pieces) {
    while (chains_.size() < pieces) {
      chains_.push_back(extend(chains_.back()));
    }
    const std::vector<Chain>& last = chains_[pieces - 1];
    std::size_t best = kNone;
    for (const std::size_t s : by_end_[points_.size()]) {
      if (last[s].loss < (best == kNone ? kInfinity : last[best].loss)) {
        best = s;
      }
    }
    Segmentation begins;
    for (std::size_t k = pieces; best != kNone && k-- > 0;) {
      begins.insert(begins.begin(), segments_[best].begin);
      best = chains_[k][best].previous;
    }
    return begins;
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  /// The best chain that ends with a given segment.
  struct Chain {
    double loss = kInfinity;
    std::size_t previous = kNone;
  };

  std::vector<Chain> extend(const std::vector<Chain>& shorter) const {
    std::vector<Chain> longer(segments_.size());
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const Segment& segment = segments_[s];
      for (const std::size_t p : by_end_[segment.begin]) {
        const double loss = shorter[p].loss + segment.loss;
        if (loss < longer[s].loss && allowed(segments_[p], segment)) {
          longer[s] = {loss, p};
        }
      }
    }
    return longer;
  }

  bool allowed(const Segment& before, const Segment& after) const {
    return (!feasible_only_ || may_follow(points_, before.line, after.line, after.begin)) &&
           supported(part_of(before), before.line, after.line, sigma_) &&
           supported(part_of(after), after.line, before.line, sigma_);
  }

  std::span<const FitPoint> part_of(const Segment& segment) const {
    return points_.subspan(segment.begin, segment.end - segment.begin);
  }

  std::span<const FitPoint> points_;
  std::vector<Segment> segments_;
  double sigma_;
  bool feasible_only_;
  std::vector<std::vector<std::size_t>> by_end_;  ///< segments by the point where they end
  std::vector<std::vector<Chain>> chains_;        ///< by number of segments, less one
};

}  // namespace

void set_units(std::span<FitPoint> points) {
  const std::size_t n = points.size();
  for (std::size_t i = 0; i < n; ++i) {
    const double here = points[i].time;
    double typical = here;
    if (n > 1 && i == 0) {
      typical = std::min(here, points[1].time);
    } else if (n > 1 && i == n - 1) {
      typical = std::max(here, points[n - 2].time);
    } else if (n > 1) {
      const auto [low, high] = std::minmax(points[i - 1].time, points[i + 1].time);
      typical = std::clamp(here, low, high);
    }
    points[i].unit = typical * points[i].spread;
  }
}

double residual(const FitPoint& point, const Line& line) {
  return (point.time - line(point.size)) / point.unit;
}

double huber_weight(double u, double c) { return std::abs(u) <= c ? 1 : c / std::abs(u); }

double outlier_proof_loss(double u) {
  constexpr double kDegrees = 4;  // of Student's t: as Lange, Little and Taylor, JASA 84, 1989
  return (kDegrees + 1) * std::log1p(u * u / kDegrees);
}

double neighbour_noise(std::span<const FitPoint> points) {
  std::vector<double> distances;
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    const FitPoint &left = points[i - 1], &here = points[i], &right = points[i + 1];
    if (!(right.size > left.size)) {
      continue;
    }
    const double share = (right.size - here.size) / (right.size - left.size);
    const double distance = here.time - share * left.time - (1 - share) * right.time;
    const double expected = std::hypot(here.unit, share * left.unit, (1 - share) * right.unit);
    distances.push_back(std::abs(distance) / expected);
  }
  return distances.empty() ? 0 : kSigmaByMedian * median_of(distances);
}

Line robust_line(std::span<const FitPoint> points, double sigma, double huber) {
  // Of reweighting, which comes to an end after a few; the change is of the line at its ends, relative.
  constexpr int kMostRounds = 20;
  constexpr double kConverged = 1e-7;
  std::vector<double> base(points.size()), weights(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    base[i] = weights[i] = 1 / (points[i].unit * points[i].unit);
  }
  Line line = weighted_line(points, weights);
  for (int round = 0; round < kMostRounds; ++round) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      weights[i] = base[i] * huber_weight(residual(points[i], line) / sigma, huber);
    }
    const Line next = weighted_line(points, weights);
    const double change = std::max(std::abs(next(points.front().size) / line(points.front().size) - 1),
                                   std::abs(next(points.back().size) / line(points.back().size) - 1));
    line = next;
    if (!(change > kConverged)) {
      break;
    }
  }
  return line;
}

std::vector<Segmentation> best_segmentations(std::span<const FitPoint> points, double sigma, double huber,
                                             int max_pieces) {
  const std::vector<std::size_t> cuts = possible_cuts(points);
  std::vector<Segment> segments;
  for (std::size_t b = 0; b < cuts.size(); ++b) {
    for (std::size_t e = b + 1; e < cuts.size(); ++e) {
      const auto part = points.subspan(cuts[b], cuts[e] - cuts[b]);
      if (distinct_sizes(part) >= kLeastSizes) {
        const Line line = robust_line(part, sigma, huber);
        segments.push_back({cuts[b], cuts[e], line, total_loss(part, line, sigma)});
      }
    }
  }
  std::vector<Segmentation> found{{0}};
  Search feasible(points, segments, sigma, true), any(points, std::move(segments), sigma, false);
  for (int pieces = 2; pieces <= max_pieces; ++pieces) {
    const Segmentation good = feasible.best(static_cast<std::size_t>(pieces));
    const Segmentation free = any.best(static_cast<std::size_t>(pieces));
    if (!good.empty()) {
      found.push_back(good);
    }
    if (!free.empty() && free != good) {
      found.push_back(free);
    }
  }
  return found;
}

double takeover(const Line& before, const Line& after, double last_before, double first_after) {
  const double low = std::floor(last_before) + 1, high = std::max(first_after, low);
  const double at_low = after(low) - before(low), at_high = after(high) - before(high);
  if (at_low >= 0 && at_high >= 0) {
    return std::clamp(std::round(std::sqrt(last_before * first_after)), low, high);
  }
  if (at_low < 0 && at_high < 0) {
    return at_high > at_low ? high : low;
  }
  const double crossing = low + (high - low) * at_low / (at_low - at_high);
  return std::clamp(at_low < 0 ? std::ceil(crossing) : std::floor(crossing), low, high);
}

}  // namespace commtune
