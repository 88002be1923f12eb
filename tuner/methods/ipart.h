#pragma once
// iPart (Wang et al., TPDS 2021): messages of unequal sizes, chosen greedily, in both directions.

#include "tuner/planning.h"

namespace commtune::tuner {

/// As the paper's abstract and those who cite it describe it. Push: as long as gradients keep coming,
/// whatever has appeared while the channel was busy goes as one message, but of a large gradient only as much
/// as is sent by the time that the next one appears, so that it does not stand in the way. Pull: what is left
/// when the backward pass ends goes in forward order, in messages that grow: each as large as can travel
/// while the forward pass is busy with what came before.
Plan ipart(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
