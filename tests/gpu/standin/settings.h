#pragma once
// What the stand-in costs, so that predictions have a known truth: environment variables, read at each use.

#include <atomic>
#include <chrono>
#include <cstddef>

namespace commtune::standin {

/// COMMTUNE_STANDIN_<name>; what is not set, or no number, is `otherwise`.
double setting(const char* name, double otherwise);

/// What is left of start + alpha + bytes / rate, where the rate, bytes a second, is set.
void take_time(std::chrono::steady_clock::time_point start, double alpha_microseconds, double bytes,
               double bytes_per_second);

/// Lasts so long while `beside` is 0, and (1 + slowed) times as long while it is not.
void take_time_beside(double seconds, const std::atomic<int>& beside, double slowed);

}  // namespace commtune::standin
