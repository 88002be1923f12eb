#pragma once
// The library's sockets, seen from outside of it.

#include <cstddef>

namespace commtune {

/// Lets the kernel hold no more than `bytes` unsent on each TCP connection that this process has now. What it
/// holds can no longer be overtaken, so that a deep buffer would undo the order in which messages use a link.
/// Errors are ignored: the order is then as good as the system's own buffers allow.
void limit_unsent(std::size_t bytes) noexcept;

}  // namespace commtune
