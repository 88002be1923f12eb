#pragma once
// Ranks as processes of the test's own, for what threads cannot do: be killed.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/transport/bootstrap/bootstrap.h"

namespace commtune::tests {

/// How a rank's process ended.
struct RankEnd {
  int status = 0;    ///< of waitpid()
  std::string said;  ///< what its body returned, or what it threw
};

enum class ForkedHosts {
  kOneEach,  ///< "h0", "h1", ...
  kOne,      ///< "h0" for all
};

/// Runs the body on n ranks, each in a process forked from this one, and returns when all have ended. Not
/// while this process has other threads.
std::vector<RankEnd> on_forked_ranks(int n,
                                     const std::function<std::string(std::shared_ptr<Bootstrap>)>& body,
                                     ForkedHosts hosts = ForkedHosts::kOneEach);

}  // namespace commtune::tests
