#pragma once
// What the links can pass, which no cost may promise to beat.

#include "perfmodel/cluster.h"
#include "perfmodel/cost/road_cost.h"
#include "perfmodel/cost/road_formula.h"

namespace commtune {

/// Whether messages were really seen to pass faster than the links would let them, the largest of which that
/// is known: then several links do more together than one of them was measured to do.
bool beats_links(const Fit& fit, const StageCost& wire);

/// The same of messages that were streamed: then not all of them are in need of the slowest host's card in
/// all their rounds. By more than samples of few bytes scatter.
bool streams_beat_links(const Fit& streamed, const StageCost& wire);

/// Holds a cost to what the links can pass.
void keep_to_links(RoadCost& cost, const Formula& wire);

/// Of messages alone, bytes beyond the largest that was measured pass no faster than the links let them:
/// buffers that took the first ones sooner are full by then.
void pass_at_rate(StageCost& stage, Bytes largest, const StageCost& wire);

}  // namespace commtune
