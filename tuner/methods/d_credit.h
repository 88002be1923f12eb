#pragma once
// After D-Credit (IEEE TNSE 2025): a sliding window whose width varies over the iteration.

#include "tuner/planning.h"

namespace commtune::tuner {

/// At hand was the abstract: equal blocks, and a number of them in flight that varies over the iteration;
/// windows of the forward phase are analytic, those of the backward phase greedy.
///
/// Taken from it: ByteScheduler's blocks and priorities, one window for each block (Plan::window), two
/// phases. Reconstructed: a block may start behind others as long as the start-up that this saves exceeds the
/// delay that it puts on an urgent one. While gradients keep appearing the next of them is the more urgent
/// one: so the window is what the channel sends until it appears, by the moments at which blocks start in a
/// simulation without a limit. After the backward pass nothing more urgent comes, and blocks start in the
/// order in which they are needed: the window is as many blocks as hide one's latency. The size of a block is
/// chosen by simulation, with the window and with constant ones.
Plan d_credit(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
