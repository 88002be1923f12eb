#pragma once
// What this process has used of its machine so far, as the kernel counts it.

#include "perfmodel/base/units.h"

namespace commtune {

struct ProcessUsage {
  Seconds cpu{};      ///< of all its threads, those that ended too
  Seconds delayed{};  ///< threads that live could run and had no core; 0 where the kernel does not tell
  Bytes peak;         ///< largest resident set
};

ProcessUsage process_usage();

}  // namespace commtune
