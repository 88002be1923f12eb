#pragma once

#include <atomic>

namespace commtune::toy {

/// A rank that has no toy; -1: all have one.
inline std::atomic<int> rank_without{-1};
/// Collectives that all ranks have called so far.
inline std::atomic<int> collectives{0};

}  // namespace commtune::toy
