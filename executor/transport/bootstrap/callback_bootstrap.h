#pragma once
// A job whose ranks somebody else started and lets talk: PyTorch's store, a scheduler's, any library with an
// all-gather.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/transport/bootstrap/bootstrap.h"

namespace commtune {

/// Collective over all ranks: every rank's record, as long as this one, one after the other in rank order.
/// Throws, or ends by a time-out of its own, where a rank does not come: nobody else ends its wait.
using AllGatherCallback = std::function<std::vector<std::byte>(std::span<const std::byte> own)>;

/// Joins. Ranks share a host where its name and its kernel's boot are the same.
///
/// all_gather  called on the thread that makes this and those that make transports of it, while they do so:
/// once the
///             ranks are connected, it is called no more
/// returns     deadlines do not reach into the callback, and abort() tells nobody: from the moment when ranks
/// are
///             connected, Transport::abort() does
/// throws      Error{kBadInput} for a rank outside of 0..ranks-1, Error{kConflict} where the callback returns
/// something
///             else than all ranks' records; what it throws
std::shared_ptr<Bootstrap> make_callback_bootstrap(int rank, int ranks, AllGatherCallback all_gather);

}  // namespace commtune
