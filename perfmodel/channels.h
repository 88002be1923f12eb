#pragma once
// The simulator's network: how one message passes the channels of its road, and how long it keeps them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "perfmodel/compute_clock.h"
#include "perfmodel/flat_cost.h"
#include "perfmodel/stage_cost.h"

namespace commtune {

/// How one step went.
struct Passage {
  double from = 0, end = 0;
};

/// How both stages of a message went; on a shared channel, where they are one operation, both are that.
struct Journey {
  Passage reduce, distribute;
};

/// A message on its way.
struct Parcel {
  std::uint32_t number = 0;
  double bytes = 0;
  double copying = 0;  ///< time of being copied in and out of a fusion buffer
};

/// The channels of one road during one iteration.
class Channels {
 public:
  /// The road must live until the next reset.
  void reset(const FlatRoad& road) {
    road_ = &road;
    shared_ = road.cost->shared_channel;
    in_turn_ = static_cast<std::size_t>(road.cost->in_turn);
    server_free_.assign(2 * in_turn_, 0.0);
    channel_ = {};
    under_way_ = under_way_until_ = 0;
  }

  /// Both stages of a message that may be served from `start` on.
  Journey send(const Parcel& parcel, double start, ComputeClock& clock) {
    return in_turn_ > 0 ? to_one(parcel, start, clock) : to_all(parcel, start, clock);
  }

  /// When the servers have all of a message, as far as its sender can tell.
  double pushed(const Parcel& parcel, const Journey& journey) const {
    const double push = std::min(road_->reduce.occupancy(parcel.bytes), road_->reduce.alone(parcel.bytes));
    return std::min(journey.reduce.end, journey.reduce.from + push + parcel.copying / 2);
  }

  /// One operation as its stages' own costs divide it.
  Journey divided(const Parcel& parcel, const Journey& journey) const {
    if (!shared_) return journey;
    const double reduce = road_->reduce.alone(parcel.bytes),
                 distribute = road_->distribute.alone(parcel.bytes);
    const double share = reduce + distribute > 0 ? reduce / (reduce + distribute) : 1;
    const Passage both = journey.reduce;
    const double middle = both.from + share * (both.end - both.from);
    return {{both.from, middle}, {middle, both.end}};
  }

  /// One stage of it: decoupled plans.
  Passage send(const Parcel& parcel, Stage stage, double start, ComputeClock& clock) {
    const bool reduce = stage == Stage::kReduce;
    const std::size_t channel = shared_ || reduce ? 0 : 1;
    return pass(channel, reduce ? road_->reduce : road_->distribute, start, parcel.bytes, parcel.copying / 2,
                clock);
  }

  /// Time during which at least one message was under way.
  double under_way() const { return under_way_; }
  /// Of the busier channel: how long it was kept for bytes alone.
  double bytes_time() const { return std::max(channel_[0].bytes_time, channel_[1].bytes_time); }

 private:
  struct Channel {
    double free = 0;  ///< when the next message may be served
    double bytes_time = 0;
  };
  /// A server that takes one message after the other.
  struct Turn {
    double* free;
    double time;
  };

  /// Through a channel no earlier than `from`.
  Passage pass(std::size_t channel, const FlatCost& cost, double from, double bytes, double copying,
               ComputeClock& clock, Turn turn = {nullptr, 0}) {
    Channel& by = channel_[channel];
    double service = std::max(from, by.free);
    const double alone = cost.alone(bytes) + copying;
    const FlatCurve::Piece& kept = cost.occupancy.at(bytes);
    const double occupancy = std::min(kept.alpha + kept.beta * bytes + copying, alone);
    by.free = service + occupancy;
    if (turn.free != nullptr) {
      service = std::max(service, *turn.free);
      *turn.free = service + turn.time;
    }
    by.bytes_time += occupancy - std::min(occupancy, kept.alpha);
    clock.occupy(channel, by.free - occupancy, by.free);
    const double end = service + alone;
    if (service > under_way_until_) under_way_until_ = service;
    if (end > under_way_until_) {
      under_way_ += end - under_way_until_;
      under_way_until_ = end;
    }
    return {service, end};
  }

  Journey to_all(const Parcel& parcel, double start, ComputeClock& clock) {
    if (shared_) {
      const Passage both = pass(0, road_->both, start, parcel.bytes, parcel.copying, clock);
      return {both, both};
    }
    const double half = parcel.copying / 2;
    const Passage there = pass(0, road_->reduce, start, parcel.bytes, half, clock);
    return {there, pass(1, road_->distribute, there.end, parcel.bytes, half, clock)};
  }

  /// The same to one server, which takes a message after the other: it may keep a message waiting while the
  /// channel, whose occupancy is that of all servers together, goes on with the next.
  Journey to_one(const Parcel& parcel, double start, ComputeClock& clock) {
    double* const server = &server_free_[2 * (parcel.number % in_turn_)];
    const double in = road_->reduce.alone.bytes_part(parcel.bytes),
                 out = road_->distribute.alone.bytes_part(parcel.bytes);
    if (shared_) {
      const Passage both =
          pass(0, road_->both, start, parcel.bytes, parcel.copying, clock, {server, std::max(in, out)});
      return {both, both};
    }
    const double half = parcel.copying / 2;
    const Passage there = pass(0, road_->reduce, start, parcel.bytes, half, clock, {server, in});
    return {there, pass(1, road_->distribute, there.end, parcel.bytes, half, clock, {server + 1, out})};
  }

  bool shared_ = true;
  std::size_t in_turn_ = 0;
  std::vector<double> server_free_;  ///< per server in turn: when it may take, and when it may give
  const FlatRoad* road_ = nullptr;
  std::array<Channel, 2> channel_;
  double under_way_ = 0, under_way_until_ = 0;
};

}  // namespace commtune
