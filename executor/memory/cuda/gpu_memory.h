#pragma once
// GPUs' memory, for whoever knows nothing of CUDA: also there in a build without it.

#include <memory>
#include <string>

#include "executor/memory/memory.h"

namespace commtune {

/// Why this process can use no GPU, in one line; empty: it can. Loads the driver: a process that forks does
/// so before.
std::string why_no_gpu();

/// How many GPUs this process may use.
int gpu_count();

/// The memory of GPU `number`, "cuda:0". While it is there its GPU is current in the thread that made it, and
/// whoever calls it from another thread makes it current there first (Memory's calls do).
///
/// throws  Error{kUnavailable} with why_no_gpu(), Error{kBadInput} where there is no such GPU
std::unique_ptr<Memory> make_gpu_memory(int number);

}  // namespace commtune
