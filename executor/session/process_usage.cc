#include "executor/session/process_usage.h"

#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace commtune {
namespace {

Seconds seconds_of(const timeval& time) {
  return Seconds{static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec)};
}

/// Sum over the threads of the second number in /proc/PID/task/TID/schedstat, nanoseconds (kernel
/// documentation, scheduler/sched-stats).
Seconds run_delay() {
  std::int64_t total = 0;
  std::error_code error;
  std::filesystem::directory_iterator thread("/proc/self/task", error);
  for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    std::ifstream file(thread->path() / "schedstat");  // fails where the thread has just ended
    std::int64_t ran = 0, delayed = 0;
    if (file >> ran >> delayed) total += delayed;
  }
  return Seconds{1e-9 * static_cast<double>(total)};
}

}  // namespace

ProcessUsage process_usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), run_delay(),
          Bytes{static_cast<std::uint64_t>(usage.ru_maxrss) * 1024}};
}

}  // namespace commtune
