#include "perfmodel/fit/curve.h"

#include <algorithm>
#include <cmath>

#include "perfmodel/base/error.h"

namespace commtune {

namespace {

/// How far a cost may fall where a piece starts before it is an error: rounding of a curve that was scaled.
constexpr double kRoundingOfCosts = 1e-9;

[[noreturn]] void reject(std::size_t piece, const std::string& rule) {
  throw Error(ErrorCode::kBadInput, "curve piece " + std::to_string(piece) + ": " + rule);
}

Seconds cost(const CurvePiece& piece, Bytes m) { return piece.alpha + piece.beta * m; }

}  // namespace

Curve::Curve(std::vector<CurvePiece> pieces) : pieces_(std::move(pieces)) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const CurvePiece& piece = pieces_[i];
    if (!(std::isfinite(piece.alpha.count()) && piece.alpha.count() >= 0)) {
      reject(i, "alpha = " + std::to_string(piece.alpha.count()) + " s: must be at least 0 and finite");
    }
    if (!(std::isfinite(piece.beta.value) && piece.beta.value >= 0)) {
      reject(i, "beta = " + std::to_string(piece.beta.value) + " s/B: must be at least 0 and finite");
    }
    if (i == 0) {
      if (piece.from.count != 0) {
        reject(i, "from = " + std::to_string(piece.from.count) + " B: the first piece starts at 0 B");
      }
      continue;
    }
    if (piece.from <= pieces_[i - 1].from) {
      reject(i, "from = " + std::to_string(piece.from.count) + " B: must be above the piece before it");
    }
    const double before = cost(pieces_[i - 1], piece.from).count();
    const double after = cost(piece, piece.from).count();
    if (after < before * (1 - kRoundingOfCosts)) {
      reject(i, "costs " + std::to_string(after) + " s where the piece before it ends at " +
                    std::to_string(before) + " s: a cost never falls");
    }
  }
}

Seconds Curve::operator()(Bytes m) const {
  if (pieces_.empty()) {
    return Seconds{0};
  }
  auto next = pieces_.begin() + 1;
  while (next != pieces_.end() && next->from <= m) {
    ++next;
  }
  return cost(*(next - 1), m);
}

SecondsPerByte Curve::least_beta() const {
  if (pieces_.empty()) return SecondsPerByte{0};
  const double start_up = pieces_.front().alpha.count();
  const auto slope = [&](const CurvePiece& piece, Bytes m) {
    return (cost(piece, m).count() - start_up) / static_cast<double>(m.count);
  };
  // Within a piece the slope of the line from the start-up to (m, t(m)) rises or falls all the way.
  double least = pieces_.front().beta.value;
  for (std::size_t i = 1; i < pieces_.size(); ++i) {
    const bool last = i + 1 == pieces_.size();
    const double at_end = last ? pieces_[i].beta.value : slope(pieces_[i], pieces_[i + 1].from);
    least = std::min({least, slope(pieces_[i], pieces_[i].from), at_end});
  }
  return SecondsPerByte{least};
}

Seconds Curve::least_alpha() const { return pieces_.empty() ? Seconds{0} : pieces_.front().alpha; }

}  // namespace commtune
