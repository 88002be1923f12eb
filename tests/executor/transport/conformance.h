#pragma once
// The suite that every transport runs: each case is called on every rank of a job at the same time.

#include <ostream>
#include <vector>

#include "executor/transport/transport.h"

namespace commtune::tests {

struct ConformanceCase {
  const char* name;
  void (*body)(Transport&);  // records its failures with EXPECT_...
};

/// What the cases may send: as Transport::limit_messages() is told before they begin.
inline constexpr MessageLimits kConformanceLimits{.longest = 4_MiB, .early = 16_MiB};

inline void PrintTo(const ConformanceCase& test, std::ostream* out) { *out << test.name; }

/// In an order that is the same on every rank.
const std::vector<ConformanceCase>& conformance_cases();

/// Waits until `count` more transfers have ended and returns them in the order in which they did.
std::vector<Completion> wait_for(Transport& transport, std::size_t count);

/// Comes back after all ranks have called it.
void synchronize(Transport& transport);

}  // namespace commtune::tests
