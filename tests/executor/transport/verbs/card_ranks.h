#pragma once
// Ranks that each have a card of this machine.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/transport/verbs/verbs.h"

namespace commtune::testing {

/// Names of the machine's cards that can be used, in order.
const std::vector<std::string>& cards();

VerbsOptions options_of(const Bootstrap& bootstrap);

std::unique_ptr<VerbsTransport> connect(const std::shared_ptr<Bootstrap>& bootstrap);

/// Runs body on n ranks, which are threads.
void on_verbs_ranks(int n, const std::function<void(VerbsTransport&)>& body);

}  // namespace commtune::testing
