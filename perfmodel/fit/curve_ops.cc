#include "perfmodel/fit/curve_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace commtune {

namespace {

struct Affine {
  double alpha = 0, beta = 0;
  double at(double m) const { return alpha + beta * m; }
  bool operator==(const Affine&) const = default;
};

Affine line_of(const CurvePiece& piece) { return {piece.alpha.count(), piece.beta.value}; }

/// Collects pieces from left to right; a piece that continues the one before is dropped, and one that would
/// start below it (rounding, recalibration) is raised.
class Builder {
 public:
  explicit Builder(std::size_t most) { pieces_.reserve(most); }
  void add(std::uint64_t from, Affine line) {
    if (!pieces_.empty()) {
      const Affine last = line_of(pieces_.back());
      if (last == line) return;
      // Two breakpoints within a byte of each other may have been rounded past each other.
      from = std::max(from, pieces_.back().from.count);
      if (pieces_.back().from.count == from) pieces_.pop_back();
    }
    if (!pieces_.empty()) {
      const double m = static_cast<double>(from);
      line.alpha += std::max(0.0, line_of(pieces_.back()).at(m) - line.at(m));
    }
    pieces_.push_back({Bytes{from}, Seconds{line.alpha}, SecondsPerByte{line.beta}});
  }
  Curve curve() && { return Curve{std::move(pieces_)}; }

 private:
  std::vector<CurvePiece> pieces_;
};

/// Sizes from `from` to below `end` on which both of two curves are one line.
struct Interval {
  Bytes from, end;
  Affine first, second;
};

/// The intervals of two curves that are not empty, from left to right; the last one ends at kEnd.
class Intervals {
 public:
  static constexpr Bytes kEnd{~std::uint64_t{0}};
  Intervals(const Curve& a, const Curve& b) : first_(a.pieces()), second_(b.pieces()) {}
  static std::size_t most(const Curve& a, const Curve& b) {
    return a.pieces().size() + b.pieces().size() - 1;
  }

  std::optional<Interval> next() {
    if (from_ == kEnd) return std::nullopt;
    const Affine first = line_of(first_.front()), second = line_of(second_.front());
    const Bytes first_end = end_of(first_), second_end = end_of(second_);
    Interval interval{from_, std::min(first_end, second_end), first, second};
    from_ = interval.end;
    if (first_end == from_) first_ = first_.subspan(1);
    if (second_end == from_) second_ = second_.subspan(1);
    return interval;
  }

 private:
  static Bytes end_of(std::span<const CurvePiece> pieces) {
    return pieces.size() > 1 ? pieces[1].from : kEnd;
  }

  std::span<const CurvePiece> first_, second_;  // those that are not passed yet
  Bytes from_;
};

enum class Envelope { kUpper, kLower };

/// From m on, until they cross. Lines that meet there are told apart by their slopes: rounding leaves one of
/// them above the other, and where they cross on either side.
bool is_above(const Affine& a, const Affine& b, double m) {
  constexpr double kSame = 1e-12;
  const double at_a = a.at(m), at_b = b.at(m);
  return std::abs(at_a - at_b) <= kSame * std::max(at_a, at_b) ? a.beta > b.beta : at_a > at_b;
}

Curve envelope(const Curve& a, const Curve& b, Envelope side) {
  Intervals intervals(a, b);
  Builder builder(2 * Intervals::most(a, b));
  while (const auto interval = intervals.next()) {
    const Affine &first = interval->first, &second = interval->second;
    const double from = static_cast<double>(interval->from.count);
    const bool above = is_above(first, second, from);
    const Affine& start = above == (side == Envelope::kUpper) ? first : second;
    const Affine& other = &start == &first ? second : first;
    builder.add(interval->from.count, start);
    const bool nears = side == Envelope::kUpper ? other.beta > start.beta : other.beta < start.beta;
    if (!nears) continue;
    const double cross = (start.alpha - other.alpha) / (other.beta - start.beta);
    const double rounded = side == Envelope::kUpper ? std::ceil(cross) : std::floor(cross);
    const double end = std::min(static_cast<double>(interval->end.count), std::ldexp(1.0, 62));
    if (rounded > from && rounded < end) builder.add(static_cast<std::uint64_t>(rounded), other);
  }
  return std::move(builder).curve();
}

}  // namespace

Curve line(double alpha, double beta) { return Curve{Seconds{alpha}, SecondsPerByte{beta}}; }

Curve times(const Curve& curve, double factor) { return recalibrated(curve, factor, factor); }

Curve of_share(const Curve& curve, double share) {
  if (share <= 0) return curve.empty() ? Curve{} : Curve{curve.pieces().front().alpha, SecondsPerByte{0}};
  Builder builder(curve.pieces().size());
  for (std::size_t i = 0; i < curve.pieces().size(); ++i) {
    const CurvePiece& piece = curve.pieces()[i];
    const double from = static_cast<double>(piece.from.count) / share;
    const bool flatter = i > 0 && piece.beta < curve.pieces()[i - 1].beta;
    const double rounded = flatter ? std::floor(from) : std::ceil(from);
    builder.add(static_cast<std::uint64_t>(rounded), {piece.alpha.count(), piece.beta.value * share});
  }
  return std::move(builder).curve();
}

Curve sum(const Curve& a, const Curve& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  Intervals intervals(a, b);
  Builder builder(Intervals::most(a, b));
  while (const auto interval = intervals.next()) {
    const Affine &first = interval->first, &second = interval->second;
    builder.add(interval->from.count, {first.alpha + second.alpha, first.beta + second.beta});
  }
  return std::move(builder).curve();
}

Curve upper(const Curve& a, const Curve& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return envelope(a, b, Envelope::kUpper);
}

Curve lower(const Curve& a, const Curve& b) {
  if (a.empty() || b.empty()) return Curve{};
  return envelope(a, b, Envelope::kLower);
}

SecondsPerByte least_time_per_byte(const Curve& curve) {
  if (curve.empty()) return SecondsPerByte{0};
  const std::vector<CurvePiece>& pieces = curve.pieces();
  // Within a piece a byte costs the less the more there are.
  double least = pieces.back().beta.value;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const auto end = static_cast<double>(pieces[i].from.count);
    least = std::min(least, line_of(pieces[i - 1]).at(end) / end);
  }
  return SecondsPerByte{least};
}

Seconds start_up_beside(SecondsPerByte beta, const Curve& curve) {
  if (curve.empty()) return Seconds{0};
  const std::vector<CurvePiece>& pieces = curve.pieces();
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const CurvePiece& piece, Bytes at) {
    const auto m = static_cast<double>(at.count);
    least = std::min(least, line_of(piece).at(m) - beta.value * m);
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    consider(pieces[i], pieces[i].from);
    if (i + 1 < pieces.size()) consider(pieces[i], pieces[i + 1].from);
  }
  return Seconds{std::max(least, 0.0)};
}

Curve recalibrated(const Curve& curve, double alpha_factor, double beta_factor) {
  Builder builder(curve.pieces().size());
  for (const CurvePiece& piece : curve.pieces()) {
    builder.add(piece.from.count, {piece.alpha.count() * alpha_factor, piece.beta.value * beta_factor});
  }
  return std::move(builder).curve();
}

}  // namespace commtune
