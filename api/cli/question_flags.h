#pragma once
// The flags for what a question assumes and where its job would run.

#include <CLI/CLI.hpp>

#include "api/question/question.h"

namespace commtune::api {

/// Adds --bandwidth-scale, --latency-scale, --device-speed-scale, --gradient-scale and --batch. The overrides
/// must outlive the app.
void add_override_flags(CLI::App& command, Overrides& overrides);

/// Adds --nodes, --node-count and --devices-per-node. The allocation must outlive the app.
void add_allocation_flags(CLI::App& command, Allocation& allocation);

}  // namespace commtune::api
