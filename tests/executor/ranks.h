#pragma once
// Ranks as threads of the test.

#include <chrono>
#include <functional>
#include <memory>

#include "executor/transport/local/local.h"
#include "executor/transport/local/local_bootstrap.h"

namespace commtune::tests {

/// A time limit that comes long after what a test waits for.
inline Deadline soon() { return Clock::now() + std::chrono::seconds(100); }

/// Runs body on n ranks at once, each with its end of a local transport, and returns when all have returned.
/// Rethrows the exception of the lowest rank that threw, after telling the others that it is gone.
void on_ranks(int n, const std::function<void(Transport&)>& body, LocalOptions options = {});

/// The same before anything connects them.
void on_bootstraps(int n, const std::function<void(const std::shared_ptr<Bootstrap>&)>& body,
                   int ranks_per_host = 1);

/// Comes back after all ranks have called it.
void synchronize(Bootstrap& bootstrap);

}  // namespace commtune::tests
