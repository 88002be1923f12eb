#pragma once
// The simulator's network with all-to-all roads: how one step passes the channel, and how long it keeps it.

#include <algorithm>

#include "perfmodel/compute_clock.h"
#include "perfmodel/flat_cost.h"
#include "perfmodel/parcel.h"
#include "perfmodel/plan.h"

namespace commtune {

/// The channel of an all-to-all road during one iteration: one step after the other, in the order in which
/// they start.
class StepChannel {
 public:
  /// The road must live until the next reset.
  void reset(const FlatRoad& road) {
    road_ = &road;
    free_ = bytes_time_ = under_way_ = under_way_until_ = 0;
  }

  /// Both stages of a message, as one step that may be served from `start` on.
  Passage send(const Parcel& parcel, double start, ComputeClock& clock) {
    return pass(road_->both, start, parcel.bytes, parcel.copying, clock);
  }

  /// One stage of it: decoupled plans.
  Passage send(const Parcel& parcel, Stage stage, double start, ComputeClock& clock) {
    const FlatCost& cost = stage == Stage::kReduce ? road_->reduce : road_->distribute;
    return pass(cost, start, parcel.bytes, parcel.copying / 2, clock);
  }

  /// When the first of both stages has ended, as the stages' own costs divide them.
  double middle(const Parcel& parcel, Passage both) const {
    return both.from + road_->reduce_share(parcel.bytes) * (both.end - both.from);
  }

  /// Time during which at least one message was under way.
  double under_way() const { return under_way_; }
  /// How long the channel was kept for bytes alone.
  double bytes_time() const { return bytes_time_; }

 private:
  Passage pass(const FlatCost& cost, double from, double bytes, double copying, ComputeClock& clock) {
    const double service = std::max(from, free_);
    const double alone = cost.alone(bytes) + copying;
    const FlatCurve::Piece& kept = cost.occupancy.at(bytes);
    const double occupancy = std::min(kept.alpha + kept.beta * bytes + copying, alone);
    free_ = service + occupancy;
    bytes_time_ += occupancy - std::min(occupancy, kept.alpha);
    clock.occupy(0, service, free_);
    const double end = service + alone;
    under_way_until_ = std::max(under_way_until_, service);
    if (end > under_way_until_) {
      under_way_ += end - under_way_until_;
      under_way_until_ = end;
    }
    return {service, end};
  }

  const FlatRoad* road_ = nullptr;
  double free_ = 0;  ///< when the next step may be served
  double bytes_time_ = 0, under_way_ = 0, under_way_until_ = 0;
};

}  // namespace commtune
