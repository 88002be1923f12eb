#include "perfmodel/cost/link_limits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "perfmodel/fit/curve_ops.h"

namespace commtune {

namespace {

/// What a stage's bytes take on the links. Without a start-up, as chunks hide one step's latency behind
/// another's bytes.
Curve bytes_on(const StageCost& wire) { return line(0, least_time_per_byte(wire.occupancy).value); }

/// A stage that was measured faster than its bytes can pass the links: fits of few or noisy samples promise
/// that.
StageCost over_wire(const StageCost& stage, const StageCost& wire) {
  const Curve bytes = bytes_on(wire);
  if (stage.alone.empty()) return stage;
  return {upper(stage.alone, bytes), upper(stage.occupancy, bytes)};
}

}  // namespace

bool beats_links(const Fit& fit, const StageCost& wire) {
  return !fit.curve.empty() && fit.curve(fit.largest) < bytes_on(wire)(fit.largest);
}

bool streams_beat_links(const Fit& streamed, const StageCost& wire) {
  constexpr double kScatter = 0.1;
  return !streamed.curve.empty() &&
         streamed.curve(streamed.largest) < (1 - kScatter) * bytes_on(wire)(streamed.largest);
}

void keep_to_links(RoadCost& cost, const Formula& wire) {
  cost.both = over_wire(cost.both, wire.both);
  cost.reduce = over_wire(cost.reduce, wire.reduce);
  cost.distribute = over_wire(cost.distribute, wire.distribute);
}

void pass_at_rate(StageCost& stage, Bytes largest, const StageCost& wire) {
  if (stage.alone.empty()) return;
  const SecondsPerByte rate = least_time_per_byte(wire.occupancy);
  const CurvePiece& last = stage.alone.pieces().back();
  if (last.from <= largest && last.beta >= rate) return;
  const Seconds start = stage.alone(largest) - rate * largest;
  if (start < Seconds{0}) return;  // it takes less than its bytes do
  std::vector<CurvePiece> pieces = stage.alone.pieces();
  std::erase_if(pieces, [&](const CurvePiece& piece) { return piece.from >= largest; });
  pieces.push_back({largest, start, rate});
  stage.alone = upper(stage.alone, Curve{std::move(pieces)});
}

}  // namespace commtune
