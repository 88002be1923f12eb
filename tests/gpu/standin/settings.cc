#include "tests/gpu/standin/settings.h"

#include <sys/prctl.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace commtune::standin {

double setting(const char* name, double otherwise) {
  const char* const text = std::getenv((std::string("COMMTUNE_STANDIN_") + name).c_str());
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return end == text ? otherwise : value;
}

namespace {

using Clock = std::chrono::steady_clock;

/// Sleeps end late by what a thread allows the kernel, 50 us: by 15 us then.
void wake_in_time() {
  thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  static_cast<void>(exact);
}

/// Part of what is left. The last 20 us are waited for by the clock; nothing yields, as a core that is given
/// away beside compilers comes back 10 ms later, however low their priority.
void wait_a_little(Clock::duration left) {
  using std::chrono::microseconds;
  if (left > microseconds{150}) {
    std::this_thread::sleep_for(microseconds{50});
  } else if (left > microseconds{20}) {
    std::this_thread::sleep_for(microseconds{1});
  }
}

Clock::duration clock_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

void take_time(Clock::time_point start, double alpha_microseconds, double bytes, double bytes_per_second) {
  double seconds = alpha_microseconds * 1e-6;
  if (bytes_per_second > 0) seconds += bytes / bytes_per_second;
  wake_in_time();
  const Clock::time_point until = start + clock_duration(seconds);
  std::this_thread::sleep_until(until - std::chrono::microseconds{150});
  for (auto left = until - Clock::now(); left.count() > 0; left = until - Clock::now()) wait_a_little(left);
}

void take_time_beside(double seconds, const std::atomic<int>& beside, double slowed) {
  wake_in_time();
  for (auto before = Clock::now(); seconds > 0;) {
    const double rate = 1 / (1 + (beside > 0 ? slowed : 0));
    wait_a_little(clock_duration(seconds / rate));
    const auto now = Clock::now();
    seconds -= rate * std::chrono::duration<double>(now - before).count();
    before = now;
  }
}

}  // namespace commtune::standin
