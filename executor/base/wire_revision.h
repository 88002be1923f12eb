#pragma once
// What transports and roads send, as one number.

namespace commtune {

/// Raise it by one in the change that alters what a transport or a road sends, or when: how a message is cut
/// into transfers, how many are under way, which goes first, at which pace, with which options of a socket,
/// by which algorithm. What was measured before no longer tells what will run, so fits of another revision
/// expire like those of other machines. A change that no measurement can see (how ranks meet, checks, names)
/// leaves it as it is.
///
/// 1: everything up to version 0.1.0. Facts that were stored without a revision are of this one.
inline constexpr int kWireRevision = 1;
inline constexpr int kFirstWireRevision = 1;

}  // namespace commtune
