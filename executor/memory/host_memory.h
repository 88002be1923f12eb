#pragma once
// The host's own memory: every operation has ended when its call returns.

#include "executor/memory/memory.h"

namespace commtune {

/// The process's one; keeps no state, so any thread may use it at any time.
Memory& host_memory();

}  // namespace commtune
