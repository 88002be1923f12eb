#include "probes/analysis/formula_shape.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "perfmodel/base/normal.h"
#include "perfmodel/fit/curve_ops.h"
#include "perfmodel/fit/fit_quality.h"

namespace commtune::probes {

namespace {

// Borrowed samples are so far apart, so that a ring's cost between latencies and bytes (about an octave) has
// the three of a piece, and reach so far beyond the measured ones: a factor of 256, over which a
// cost goes from start-up to bytes. Nearer ones make fits slower.
constexpr double kOctavesApart = 0.5;
constexpr double kOctavesBeyond = 8;
// Relative standard deviation of what is borrowed, for each octave from the nearest measured size, and of the
// part of the ratio's change that is interpolated. That part is bounded: with no weight at all a fit would be
// free between two sizes, and might step up just below the larger one. With less doubt a wrong formula bends
// what was measured; with more, fits are as free as without it. Chosen together, not one by one, on refits of
// two probes (4 hosts, 1 Gb/s, 200 us): what lets push-pull's median error at sizes left out fall from 8.7 to
// 7.2 %, all-gather's from 6.6 to 5.4 %.
constexpr double kDoubtPerOctave = 0.01;
constexpr double kDoubtOfChange = 0.25, kMostDoubt = 0.1;

// Of what the formula costs at the smallest size: at so much more there is enough of bytes to tell their
// part.
constexpr double kShowsBytes = 2;

double log_size(Bytes size) { return std::log2(static_cast<double>(std::max<std::uint64_t>(size.count, 1))); }

Bytes size_of(double log_size) {
  return Bytes{static_cast<std::uint64_t>(std::llround(std::exp2(log_size)))};
}

/// A measured size by how much longer it took than the formula says.
struct Known {
  double log_size = 0;
  double log_ratio = 0;
  double half_width = 0;  ///< relative
};

/// How much the logarithm of measured over shape changes from size to size, in all.
double unevenness(std::span<const Sample> by_size, const Curve& shape) {
  double change = 0, before = 0;
  for (std::size_t i = 0; i < by_size.size(); ++i) {
    const double ratio = std::log(by_size[i].time / shape(by_size[i].size));
    if (i > 0) change += std::abs(ratio - before);
    before = ratio;
  }
  return change;
}

class Borrower {
 public:
  Borrower(std::span<const Sample> samples, const FormulaShape& shape) : shape_(shape) {
    std::vector<Sample> sorted(samples.begin(), samples.end());
    std::sort(sorted.begin(), sorted.end(), [](const Sample& a, const Sample& b) { return a.size < b.size; });
    // What the smallest takes beyond the formula every message does.
    const Sample& first = sorted.front();
    missing_ = std::max(first.time - shape_.curve(first.size), Seconds{0});
    for (const Sample& sample : sorted) {
      const Seconds formula = cost(sample.size);
      if (!(shape_.curve(sample.size).count() > 0)) {
        known_.clear();
        return;
      }
      known_.push_back(
          {log_size(sample.size), std::log(sample.time / formula), sample.half_width / sample.time});
    }
    largest_ = sorted.back();
  }

  std::optional<Seconds> beyond_largest(Bytes size) const {
    if (known_.empty()) return std::nullopt;
    return cost(size) * std::exp(log_ratio_above(log_size(size)));
  }

  std::vector<Sample> take() {
    if (known_.empty()) return {};
    for (std::size_t i = 1; i < known_.size(); ++i) between(known_[i - 1], known_[i]);
    const Known &first = known_.front(), &last = known_.back();
    below(first);
    above(last);
    return std::move(borrowed_);
  }

 private:
  Seconds cost(Bytes size) const { return missing_ + shape_.curve(size); }

  void between(const Known& a, const Known& b) {
    const double octaves = b.log_size - a.log_size;
    const int gaps = static_cast<int>(octaves / kOctavesApart);
    for (int i = 1; i < gaps; ++i) {
      const double share = static_cast<double>(i) / gaps;
      const double distance = std::min(share, 1 - share);
      const double change =
          std::min(kDoubtOfChange * std::abs(b.log_ratio - a.log_ratio) * 2 * distance, kMostDoubt);
      borrow(a.log_size + share * octaves, std::lerp(a.log_ratio, b.log_ratio, share),
             std::lerp(a.half_width, b.half_width, share),
             std::hypot(change, kDoubtPerOctave * distance * octaves), gaps - 1);
    }
  }

  void below(const Known& first) {
    const double octaves = first.log_size - log_size(shape_.smallest);
    beyond(first, octaves, -kOctavesApart, [&](double) { return first.log_ratio; });
  }

  void above(const Known& last) {
    const double octaves = log_size(shape_.largest) - last.log_size;
    beyond(last, octaves, kOctavesApart, [&](double log_size) { return log_ratio_above(log_size); });
  }

  double log_ratio_above(double log_size) const {
    const double by_formula = log_ratio_by_formula(log_size);
    if (shape_.alone.empty()) return by_formula;
    const Bytes size = size_of(log_size);
    return std::min(by_formula, std::log((largest_.time + added_alone(size)) / cost(size)));
  }

  /// By so much a message of this size takes longer alone than one of the largest measured size: by what its
  /// bytes take at least, since start-ups of some sizes are longer than others'.
  Seconds added_alone(Bytes size) const {
    const double bytes = static_cast<double>(size.count) - static_cast<double>(largest_.size.count);
    return std::max(shape_.alone(size) - shape_.alone(largest_.size),
                    bytes * Seconds{shape_.alone.pieces().back().beta.value});
  }

  /// What the largest takes less than the formula is a part of its bytes.
  double log_ratio_by_formula(double log_size) const {
    const Known& last = known_.back();
    const double more = cost(size_of(log_size)) / cost(size_of(last.log_size));
    if (last.log_ratio <= 0) return less_of_bytes(more);
    return std::log1p(std::expm1(last.log_ratio) * std::pow(more, shape_.excess_grows - 1));
  }

  /// Where the formula costs so many times what it does at the largest size, and the bytes beyond the
  /// smallest size take the part of it that those of the largest took.
  double less_of_bytes(double more) const {
    const Known &first = known_.front(), &last = known_.back();
    const double smallest = cost(size_of(first.log_size)) / cost(size_of(last.log_size));
    if (smallest * kShowsBytes > 1) return last.log_ratio;
    const double start = smallest * std::exp(std::min(first.log_ratio, 0.0));
    const double part = (std::exp(last.log_ratio) - start) / (1 - smallest);
    if (!(part > 0)) return last.log_ratio;
    return std::log((start + part * (more - smallest)) / more);
  }

  template <typename RatioAt>
  void beyond(const Known& end, double octaves, double step, const RatioAt& log_ratio_at) {
    const int steps = static_cast<int>(std::min(octaves, kOctavesBeyond) / kOctavesApart);
    for (int i = 1; i <= steps; ++i) {
      const double log_size = end.log_size + i * step;
      borrow(log_size, log_ratio_at(log_size), end.half_width, kDoubtPerOctave * i * kOctavesApart, steps);
    }
  }

  void borrow(double log_size, double log_ratio, double half_width, double doubt, int together) {
    const Bytes size = size_of(log_size);
    const Seconds time = cost(size) * std::exp(log_ratio);
    const double relative = std::hypot(half_width, kNormal95 * doubt) * std::sqrt(together);
    borrowed_.push_back({size, time, time * relative, 1});
  }

  const FormulaShape& shape_;
  Seconds missing_{};
  std::vector<Known> known_;
  Sample largest_;
  std::vector<Sample> borrowed_;
};

/// Of a curve for samples that are not all it was fitted to, each weighted by its time.
FitQuality quality_of(const Curve& curve, std::span<const Sample> samples) {
  std::vector<double> measured, predicted;
  for (const Sample& sample : samples) {
    measured.push_back(sample.time.count());
    predicted.push_back(curve(sample.size).count());
  }
  return fit_quality(measured, predicted, measured);
}

}  // namespace

Curve stream_shape(std::span<const Sample> by_size, const Curve& bytes, double on_top_unless_told) {
  // In logarithms: samples whose medians are known to 2 % (ProbeOptions::width) do not tell a smaller gain.
  constexpr double kTells = 0.02;
  // Of handing over, which may be hidden or not: quarters are all that samples of a few per cent tell apart.
  constexpr int kParts = 4;
  const auto always = [](Seconds time) { return Curve{time, SecondsPerByte{0}}; };
  const Seconds start = by_size.front().time;
  const Seconds handing_over = std::max(start - bytes(by_size.front().size), Seconds{0});
  const auto shape = [&](double on_top) {
    return upper(always(start), sum(always(on_top * handing_over), bytes));
  };
  Curve best = shape(on_top_unless_told);
  double least = unevenness(by_size, best) - kTells;
  for (int part = 0; part <= kParts; ++part) {
    Curve other = shape(static_cast<double>(part) / kParts);
    const double uneven = unevenness(by_size, other);
    if (uneven >= least) continue;
    least = uneven;
    best = std::move(other);
  }
  return best;
}

std::optional<Seconds> beyond_largest(std::span<const Sample> samples, const FormulaShape& shape,
                                      Bytes size) {
  return samples.empty() ? std::nullopt : Borrower(samples, shape).beyond_largest(size);
}

std::vector<Sample> borrowed_samples(std::span<const Sample> samples, const FormulaShape& shape) {
  return samples.empty() ? std::vector<Sample>{} : Borrower(samples, shape).take();
}

Fit fit_with_shape(std::span<const Sample> samples, const FormulaShape& shape, const FitOptions& options) {
  return fit_with_borrowed(samples, borrowed_samples(samples, shape), options);
}

Fit fit_with_borrowed(std::span<const Sample> samples, std::span<const Sample> borrowed,
                      const FitOptions& options) {
  std::vector<Sample> all(samples.begin(), samples.end());
  all.insert(all.end(), borrowed.begin(), borrowed.end());
  Fit fit = fit_curve(all, options);
  const auto [least, most] = std::minmax_element(
      samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.size < b.size; });
  fit.smallest = least->size;
  fit.largest = most->size;
  fit.quality = quality_of(fit.curve, samples);
  return fit;
}

}  // namespace commtune::probes
