#pragma once
// What every transport does when ranks fail or keep to no rule: each case has ranks of its own, since a fault
// ends them. Ranks are threads, or processes where one of them is killed. Not for Open MPI's, whose job ends
// with the first rank that is lost (mpi_fault_test.py).

#include <functional>
#include <memory>
#include <ostream>
#include <vector>

#include "executor/transport/bootstrap/bootstrap.h"

namespace commtune::tests {

/// How a rank of a job is connected. Collective; with kConformanceLimits.
struct JobConnector {
  std::function<std::unique_ptr<Transport>(const std::shared_ptr<Bootstrap>&)> connect;
  int ranks = 3;
  int ranks_per_host = 1;  ///< 1, or all
};

struct FaultCase {
  const char* name;
  void (*body)(const JobConnector&);  // records its failures with EXPECT_...
  bool in_processes = false;          // not for a transport whose ranks are threads of one process
};

inline void PrintTo(const FaultCase& test, std::ostream* out) { *out << test.name; }

const std::vector<FaultCase>& fault_cases();

}  // namespace commtune::tests
