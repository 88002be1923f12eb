#pragma once
// Stage costs as the simulator's inner loop asks for them.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/fit/curve.h"

namespace commtune {

/// A cost curve laid out for the inner loop.
class FlatCurve {
 public:
  explicit FlatCurve(const Curve& curve) {
    for (const CurvePiece& piece : curve.pieces()) {
      pieces_.push_back({static_cast<double>(piece.from.count), piece.alpha.count(), piece.beta.value});
    }
    if (pieces_.empty()) pieces_.push_back({0, 0, 0});
  }
  struct Piece {
    double from, alpha, beta;
  };
  const Piece& at(double m) const {
    const Piece* piece = &pieces_.back();
    while (piece->from > m) --piece;
    return *piece;
  }
  double operator()(double m) const {
    const Piece& piece = at(m);
    return piece.alpha + piece.beta * m;
  }
  /// By rising `from`, the first of 0; at least one.
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// No size costs less.
  double start_up() const { return pieces_.front().alpha; }
  /// The part of the cost that fewer bytes would have lowered.
  double bytes_part(double m) const { return at(m).beta * m; }

 private:
  std::vector<Piece> pieces_;
};

/// What one stage costs, ready to be asked for every message.
struct FlatCost {
  FlatCurve alone, occupancy;
  explicit FlatCost(const StageCost& cost) : alone(cost.alone), occupancy(cost.occupancy) {}
};

/// What a road costs, laid out once for many simulations. Keeps a pointer to the road's cost.
struct FlatRoad {
  const RoadCost* cost;
  FlatCost both, reduce, distribute;
  int most_rounds;  ///< the cost's; with fewer a simulation takes less time and says less of who waits for
                    ///< whom
  explicit FlatRoad(const RoadCost& road)
      : cost(&road),
        both(road.both),
        reduce(road.reduce),
        distribute(road.distribute),
        most_rounds(road.most_rounds) {}
  /// Of a message that are simulated.
  int rounds() const { return std::min(most_rounds, cost->rounds.both()); }
  /// Of both stages as one operation the part that is the first one's, by what each costs on its own.
  double reduce_share(double m) const {
    const double first = reduce.alone(m), second = distribute.alone(m);
    return first + second > 0 ? first / (first + second) : 1;
  }
};

/// The same road, simulated with so many rounds at most.
inline FlatRoad with_rounds(FlatRoad road, int most) {
  road.most_rounds = std::min(road.most_rounds, most);
  return road;
}

}  // namespace commtune
