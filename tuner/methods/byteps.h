#pragma once
// BytePS (Jiang et al., OSDI 2020), as its defaults run it: docs/env.md, scheduled_queue.cc.

#include "tuner/planning.h"

namespace commtune::tuner {

/// Tensors cut into 4,096,000 B, each piece whole to the server that its key hashes to (server_keys.h), the
/// lowest layer first among those that wait, nothing held back (its credit is 32 GiB unless it is set), and
/// an update that waits for all gradients. On servers to which messages are cut evenly the same pieces.
///
/// Taken from its code: partition, hash, priorities, credit, barrier. Left out: its own summing inside a host
/// (LocalSum::kFirst roads have that) and the mixed mode of servers beside and apart from workers.
Plan byteps(const Planning& job, const RoadOption& option);

}  // namespace commtune::tuner
