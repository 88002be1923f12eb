#pragma once
// How the ranks of a run connect their cards. For the sources of this folder.

#include <string>
#include <vector>

#include "executor/transport/bootstrap/bootstrap.h"
#include "executor/transport/proof/proof.h"
#include "executor/transport/verbs/queue_pair.h"

namespace commtune::verbs {

/// Collective: returns where no rank has failed in what comes before.
///
/// failure  of this rank; empty: none
/// throws   Error{kUnavailable} on all ranks with the same text, which names the first that has
void agree_on_success(Bootstrap& bootstrap, const std::string& failure, Deadline until);

/// What one rank proves to another.
struct Introduction {
  proof::Proof own{};       ///< to be shown to the peer
  proof::Proof expected{};  ///< that it must show
};

/// Of one rank's connections to a peer.
using PairsOfPeer = std::vector<QueuePair*>;

/// Collective: tells the ranks each other's addresses and connects the pairs. Throws Error{kUnavailable} as
/// above, Error{kTimeout}, Error{kPeerLost}.
///
/// pairs    by rank, as many to each; to this one none
/// returns  by rank
std::vector<Introduction> connect_pairs(Bootstrap& bootstrap, const Device& device,
                                        const std::vector<PairsOfPeer>& pairs, const RetryRule& retry,
                                        Deadline until);

}  // namespace commtune::verbs
