#include "tests/cluster/link_clock.h"

#include <algorithm>

namespace commtune::cluster {

namespace {

constexpr std::int64_t kPicosecondsPerSecond = Time::period::den;

}  // namespace

Time LinkClock::duration(std::int64_t wire_bytes) const {
  return Time{(wire_bytes * kPicosecondsPerSecond + bytes_per_second_ - 1) / bytes_per_second_};
}

std::int64_t LinkClock::backlog(Time now) const {
  if (free_at_ <= now) return 0;
  const double seconds = std::chrono::duration<double>(free_at_ - now).count();
  return static_cast<std::int64_t>(seconds * static_cast<double>(bytes_per_second_));
}

Passage LinkClock::send(Time ready, std::int64_t wire_bytes) {
  const Time start = std::max(ready, free_at_);
  free_at_ = start + duration(wire_bytes);
  return {start, free_at_};
}

}  // namespace commtune::cluster
