// A kernel that does nothing for a stated time on as many multiprocessors as it has blocks: the layers of a
// replay, and the load beside which collectives are measured.

#include <cstdint>

namespace {

__device__ std::uint64_t device_clock() {
  std::uint64_t nanoseconds = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

}  // namespace

extern "C" {

/// Each block spins for so long from its own start.
__global__ void commtune_busy(std::uint64_t nanoseconds) {
  const std::uint64_t begin = device_clock();
  while (device_clock() - begin < nanoseconds) {
  }
}

/// Spins until the device's clock is there, and leaves at `stamp` what it was then. Of several blocks each waits.
__global__ void commtune_busy_until(std::uint64_t end, std::uint64_t* stamp) {
  while (device_clock() < end) {
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *stamp = device_clock();
}

}  // extern "C"
