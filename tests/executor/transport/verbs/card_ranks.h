#pragma once
// Ranks that each have a card of this machine.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/transport/verbs/verbs.h"

namespace commtune::tests {

/// Names of the machine's cards that can be used, in order.
const std::vector<std::string>& cards();

/// connections  of each pair of ranks
VerbsOptions options_of(const Bootstrap& bootstrap, int connections = 1);

std::unique_ptr<VerbsTransport> connect(const std::shared_ptr<Bootstrap>& bootstrap, int connections = 1);

/// Runs body on n ranks, which are threads.
void on_verbs_ranks(int n, const std::function<void(VerbsTransport&)>& body, int connections = 1);

}  // namespace commtune::tests
