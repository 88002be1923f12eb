#pragma once
// How the transfers that a plan has under way at the same time share the cards of their hosts.

#include <vector>

#include "executor/roads/host_layout.h"
#include "perfmodel/plan.h"

namespace commtune {

/// By peer: which part, in (0, 1], of a link between two hosts that `rank`'s sends to that peer get while a
/// road is busy. With parameter servers a rank sends to several peers and takes from several at once: each
/// flow gets its part of the bytes that leave the sender's host or that reach the receiver's, whichever is
/// more, so that neither the sender's card nor the switch before the receiver's builds a queue, in which what
/// is urgent would wait. 1 for peers on the same host, for peers that get nothing, and on all-reduce roads,
/// where a rank sends to one peer at a time. O(ranks).
std::vector<double> link_shares(const Road& road, const HostLayout& hosts, int rank);

}  // namespace commtune
