#pragma once
// Ranks that share the GPUs of this machine: processes, connected by TCP on the loopback, each of which NCCL
// takes for a host of its own.

#include <functional>
#include <memory>
#include <string>

#include "executor/memory/memory.h"
#include "executor/transport/transport.h"

namespace commtune::tests {

/// Why ranks cannot be tested here; empty: they can. Asked in a process of its own: a process that has loaded
/// NVIDIA's driver cannot fork ranks that use it.
std::string why_no_gpu_ranks();

/// How each rank ended: "" where the body returned and no expectation in it failed; "killed by signal 9";
/// what it threw.
std::vector<std::string> ends_of_gpu_ranks(int n, const std::function<void(Transport&, Memory&)>& body);

/// Runs the body on n ranks; a failure of GoogleTest's names the rank that did not end well. Ranks that are
/// not done after 100 s are ended.
void on_gpu_ranks(int n, const std::function<void(Transport&, Memory&)>& body);

}  // namespace commtune::tests
