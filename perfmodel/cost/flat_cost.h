#pragma once
// Stage costs as the simulator's inner loop asks for them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "perfmodel/cost/road_cost.h"
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

/// Of a host: those that are looked at where there are too many, and how many are not.
inline constexpr std::uint32_t kNeighbours = 2, kFewPeers = 8;

/// What a road costs, laid out once for many simulations. Keeps a pointer to the road's cost.
struct FlatRoad {
  const RoadCost* cost;
  FlatCost both, reduce, distribute;
  int most_rounds;  ///< the cost's; with fewer a simulation takes less time and says less of who waits for
                    ///< whom
  /// Of servers in turn: a message is followed to all hosts where they are few, else to a neighbour on either
  /// side.
  bool to_all_hosts = true;
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

/// The same road without messages being followed to all hosts, for what is compared with its like: between
/// eight servers in turn that takes a quarter of the time, and is up to a tenth too fast.
inline FlatRoad among_neighbours(FlatRoad road) {
  road.to_all_hosts = false;
  return road;
}
/// Whether that makes a difference.
inline bool is_among_few(const RoadCost& cost) {
  if (!cost.shared_channel || cost.in_turn == 0 || !cost.server_hosts.connections_bind) return false;
  const std::uint32_t peers = cost.server_hosts.connected(static_cast<std::uint32_t>(cost.in_turn)) - 1;
  return peers > kNeighbours && peers <= kFewPeers;
}

/// And with a round of each stage, for draws and first looks.
inline FlatRoad coarse(FlatRoad road) {
  constexpr int kStages = 2;
  road.most_rounds = std::min(road.most_rounds, kStages);
  return among_neighbours(std::move(road));
}

}  // namespace commtune
