#include "tests/cluster/link_clock.h"

#include <algorithm>

namespace commtune::cluster {

namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

}  // namespace

Nanoseconds LinkClock::duration(std::int64_t wire_bytes) const {
  return Nanoseconds{(wire_bytes * kNanosecondsPerSecond + bytes_per_second_ - 1) / bytes_per_second_};
}

Nanoseconds LinkClock::ready(const Passage& arrival, std::int64_t wire_bytes) const {
  return std::max(arrival.first, arrival.last - duration(wire_bytes));
}

std::int64_t LinkClock::backlog(Nanoseconds now) const {
  if (free_at_ <= now) return 0;
  const double seconds = std::chrono::duration<double>(free_at_ - now).count();
  return static_cast<std::int64_t>(seconds * static_cast<double>(bytes_per_second_));
}

Passage LinkClock::serve(Nanoseconds ready, std::int64_t wire_bytes) {
  const Nanoseconds start = std::max(ready, free_at_);
  free_at_ = start + duration(wire_bytes);
  return {start, free_at_};
}

}  // namespace commtune::cluster
