#include "executor/replay/cuda/device_clock.h"

#include <cstring>
#include <limits>

#include "executor/memory/cuda/kernel_images.h"

namespace commtune::cuda {
namespace {

std::int64_t nanoseconds_of(Clock::time_point when) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
}

}  // namespace

DeviceClock::DeviceClock(const Gpu& gpu)
    : module_(images::busy()),
      busy_until_(module_.function("commtune_busy_until")),
      blocks_(static_cast<unsigned>(gpu.multiprocessors())),
      stamp_(allocate_pinned(sizeof(std::uint64_t))) {}

void DeviceClock::launch(const Stream& stream, std::uint64_t end, unsigned blocks) const {
  auto place = reinterpret_cast<std::uint64_t>(stamp_.get());
  void* arguments[] = {&end, &place};
  expect(driver().launch(busy_until_, blocks, 1, 1, 32, 1, 1, 0, stream.handle(), arguments, nullptr),
         "cuLaunchKernel");
}

std::uint64_t DeviceClock::stamp() const {
  std::uint64_t value = 0;
  std::memcpy(&value, stamp_.get(), sizeof value);
  return value;
}

/// By the fastest of several round trips: the offset is off by no more than half that trip's time (Cristian,
/// Distributed Computing 3, 1989).
void DeviceClock::adjust(const Stream& stream) {
  constexpr int kTrips = 8;
  stream.synchronize();
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTrips; ++i) {
    const std::int64_t before = nanoseconds_of(Clock::now());
    launch(stream, 0, 1);
    stream.synchronize();
    const std::int64_t after = nanoseconds_of(Clock::now());
    if (after - before >= shortest) continue;
    shortest = after - before;
    offset_ = static_cast<std::int64_t>(stamp()) - (before + (after - before) / 2);
  }
}

void DeviceClock::compute_until(const Stream& stream, Clock::time_point end) {
  launch(stream, static_cast<std::uint64_t>(nanoseconds_of(end) + offset_), blocks_);
}

Clock::time_point DeviceClock::last_end() const {
  const std::chrono::nanoseconds since(static_cast<std::int64_t>(stamp()) - offset_);
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(since));
}

}  // namespace commtune::cuda
