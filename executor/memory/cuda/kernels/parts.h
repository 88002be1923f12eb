#pragma once
// Parts of memory that one kernel copies together or apart: what the host hands over with the launch. Read by
// the kernels' compiler and the host's.

#include <cstdint>

namespace commtune::cuda {

/// So many fit into what a launch may carry on every GPU (4 KiB).
inline constexpr unsigned kPartsOfALaunch = 240;

/// They lie one after the other on the wire. Of a part's own memory the address, on the wire where it begins.
struct Parts {
  std::uint64_t address[kPartsOfALaunch];
  std::uint64_t begin[kPartsOfALaunch + 1];  ///< in elements of the kernel's; behind the last: the end
  std::uint32_t count;
};

/// A block of threads takes so many elements at a time.
inline constexpr std::uint32_t kBytesOfATurn = 32U * 1024;    ///< gather, scatter
inline constexpr std::uint32_t kElementsOfATurn = 8U * 1024;  ///< encode, decode
inline constexpr std::uint32_t kThreads = 256;

}  // namespace commtune::cuda
