#pragma once
// A GPU's clock beside the host's, and kernels that end at a moment of it. For the sources of this folder.

#include <cstdint>

#include "executor/memory/cuda/device.h"
#include "executor/transport/transport.h"

namespace commtune::cuda {

/// One stream's kernels, on as many multiprocessors as there are. The GPU is current. One thread.
class DeviceClock {
 public:
  explicit DeviceClock(const Gpu& gpu);

  /// Holds the two clocks together again; waits for what the stream was given.
  void adjust(const Stream& stream);
  /// A kernel that ends then, or at once.
  void compute_until(const Stream& stream, Clock::time_point end);
  /// When the last such kernel ended; after the stream was waited for.
  Clock::time_point last_end() const;

 private:
  void launch(const Stream& stream, std::uint64_t end, unsigned blocks) const;
  std::uint64_t stamp() const;

  const Module module_;
  const CUfunction busy_until_;
  const unsigned blocks_;
  const PinnedMemory stamp_;  // the device's nanoseconds at the end of the last kernel
  std::int64_t offset_ = 0;   // nanoseconds: the device's clock minus the host's
};

}  // namespace commtune::cuda
