#include "tests/gpu/standin/settings.h"

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

void take_time(std::chrono::steady_clock::time_point start, double alpha_microseconds, double bytes,
               double bytes_per_second) {
  double seconds = alpha_microseconds * 1e-6;
  if (bytes_per_second > 0) seconds += bytes / bytes_per_second;
  if (seconds <= 0) return;
  using Length = std::chrono::steady_clock::duration;
  const auto until = start + std::chrono::duration_cast<Length>(std::chrono::duration<double>(seconds));
  // A sleep ends late by some 60 us: the last stretch is waited for by the clock.
  constexpr std::chrono::microseconds kLast{100};
  if (until - std::chrono::steady_clock::now() > kLast) std::this_thread::sleep_until(until - kLast);
  while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

void take_time_beside(double seconds, const std::atomic<int>& beside, double slowed) {
  constexpr double kLast = 2e-4;  // as a sleep ends late by some 60 us
  auto before = std::chrono::steady_clock::now();
  while (seconds > 0) {
    const double rate = 1 / (1 + (beside > 0 ? slowed : 0));
    if (seconds / rate > kLast) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      std::this_thread::yield();
    }
    const auto now = std::chrono::steady_clock::now();
    seconds -= rate * std::chrono::duration<double>(now - before).count();
    before = now;
  }
}

}  // namespace commtune::standin
