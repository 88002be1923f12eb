#include "api/rank/reporter.h"

#include <cstdio>
#include <exception>
#include <string>

namespace commtune::api {

void Reporter::report(const LaunchReport& report) const {
  if (rank_ != 0) return;
  const std::string line = to_line(report) + '\n';
  const std::scoped_lock lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void Reporter::report_failure(const Failed& failure) const noexcept {
  try {
    const std::string line = to_line(failure) + '\n';
    const std::scoped_lock lock(mutex_);
    std::FILE* const stream = rank_ == 0 ? stdout : stderr;
    std::fwrite(line.data(), 1, line.size(), stream);
    std::fflush(stream);
  } catch (const std::exception&) {
    std::fputs("tune-rank: out of memory while reporting a failure\n", stderr);
  }
}

}  // namespace commtune::api
