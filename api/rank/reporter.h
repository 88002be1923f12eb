#pragma once
// A rank's way to the program that started the job: rank 0 speaks on standard output, the others only when
// they fail, on standard error.

#include <mutex>

#include "api/wire/events.h"

namespace commtune::api {

/// May be called from any thread.
class Reporter {
 public:
  /// Until then nothing but failures is said.
  void set_rank(int rank) { rank_ = rank; }

  /// A line on rank 0's standard output, at once; nothing on other ranks.
  void report(const LaunchReport& report) const;

  /// On every rank; never throws, since it is the last thing that is said.
  void report_failure(const Failed& failure) const noexcept;

 private:
  int rank_ = -1;             // set once, before other threads exist
  mutable std::mutex mutex_;  // guards standard output
};

}  // namespace commtune::api
