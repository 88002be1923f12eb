#pragma once
// Which GPU is whose.

#include "executor/transport/transport.h"

namespace commtune {

/// The number of this rank's GPU: its own number among the ranks of its host, modulo the GPUs there.
/// throws  Error{kUnavailable} naming rank, host and why it can use none
int gpu_of_rank(const Peers& peers);

}  // namespace commtune
