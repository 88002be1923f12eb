#pragma once
// Ranks as threads of the test.

#include <functional>

#include "executor/transport/local/local.h"

namespace commtune::testing {

/// Runs body on n ranks at once, each with its end of a local transport, and returns when all have returned.
/// Rethrows the exception of the lowest rank that threw, after telling the others that it is gone.
void on_ranks(int n, const std::function<void(Transport&)>& body, LocalOptions options = {});

}  // namespace commtune::testing
