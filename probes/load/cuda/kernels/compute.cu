// A fixed amount of arithmetic in registers: the layers beside which collectives are measured. Host twin:
// tests/gpu/standin/twins_load.cc.

#include <cstdint>

namespace {

constexpr int kChains = 4;  // that do not wait for each other: as many as hide an addition's latency
constexpr int kLinks = 4;   // of each, in a round

}  // namespace

extern "C" {

/// Each thread does so many rounds of 16 multiplications and additions. `never` is written only where the sum
/// is `stop`, which it is not: the compiler cannot know, and leaves nothing out.
__global__ void __launch_bounds__(1024) commtune_compute(std::uint64_t rounds, float stop, float* never) {
  float values[kChains];
  for (int i = 0; i < kChains; ++i) values[i] = static_cast<float>(threadIdx.x + i);
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (int link = 0; link < kLinks; ++link) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) values[i] = fmaf(values[i], 0.999999F, 1e-6F);
    }
  }
  float sum = 0;
  for (int i = 0; i < kChains; ++i) sum += values[i];
  if (sum == stop) *never = sum;
}

}  // extern "C"
