#pragma once
// After ASC-WFBP (Shi, Chu, Li: Exploiting Simultaneous Communications, INFOCOM 2021).

#include "tuner/planning.h"

namespace commtune::tuner {

/// At hand was the abstract: several all-reduces at once share their start-ups, and are merged where that
/// pays; an adaptive choice over wait-free back-propagation.
///
/// Taken from it: k messages at once take `a + k b m` where one after the other they take `k a + k b m`.
/// Reconstructed: for each k of 1, 2, 4 and 8 neighbours are fused exactly (fusion.h) at a start-up of a / k,
/// and a message starts as long as fewer than k are under way (Plan::window); the k that simulates fastest is
/// taken. With k = 1 this is exact fusion, so merging pays wherever it does there.
Plan asc_wfbp(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
