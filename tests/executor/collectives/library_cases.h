#pragma once
// The suite that every library of collectives runs: each case is called on every rank at the same time.

#include <ostream>
#include <vector>

#include "executor/collectives/library.h"
#include "executor/transport/communicator.h"

namespace commtune::tests {

struct LibraryCase {
  const char* name;
  void (*body)(Communicator&, CollectiveLibrary&);  // records its failures with EXPECT_...
};

inline void PrintTo(const LibraryCase& test, std::ostream* out) { *out << test.name; }

/// In an order that is the same on every rank. The library is of all ranks.
const std::vector<LibraryCase>& library_cases();

}  // namespace commtune::tests
