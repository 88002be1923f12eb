// libnccl-tuner-commtune.so: what NCCL loads into any program that uses it. Nothing here throws, waits or
// starts a thread, and no error of ours fails a communicator: NCCL's own choice stands instead.

#include <cstdlib>
#include <memory>

#include "api/nccl/communicator_tuner.h"
#include "api/nccl/tuner_interface.h"

extern "C" {
#pragma GCC visibility push(default)
extern const commtune::nccl_tuner::TunerV4 ncclTunerPlugin_v4;
extern const commtune::nccl_tuner::TunerV5 ncclTunerPlugin_v5;
extern const commtune::nccl_tuner::TunerV6 ncclTunerPlugin_v6;
extern const commtune::nccl_tuner::TunerV6 ncclTunerPlugin_v7;
#pragma GCC visibility pop
}

namespace commtune::nccl_tuner {
namespace {

constexpr const char* kName = "commtune";

void say(Logger log, int level, const std::string& text) {
  if (log != nullptr) log(level, kLogTuning, __FILE__, __LINE__, "TUNER/%s: %s", kName, text.c_str());
}

std::unique_ptr<CommunicatorTuner> open_tuner(std::size_t ranks, std::size_t nodes, Logger log) {
  const char* const text = std::getenv(kTableVariable);
  auto tuner = std::make_unique<CommunicatorTuner>(text == nullptr ? "" : text, ranks, nodes);
  if (!tuner->problem().empty()) say(log, kLogWarning, tuner->problem() + "; NCCL's own choice stands");
  say(log, kLogInfo, tuner->summary());
  return tuner;
}

Result init_v4(std::size_t ranks, std::size_t nodes, Logger log, void** context) noexcept {
  *context = nullptr;
  try {
    *context = open_tuner(ranks, nodes, log).release();
  } catch (...) {  // out of memory
  }
  return kSuccess;
}

/// NCCL's constants stay as they are: what they say of sizes without a tuning is its own choice.
Result init_v5(void** context, std::uint64_t /*communicator*/, std::size_t ranks, std::size_t nodes,
               Logger log, NvlinkDomains* /*domains*/, void* /*constants*/) noexcept {
  *context = nullptr;
  try {
    *context = open_tuner(ranks, nodes, log).release();
  } catch (...) {  // out of memory
  }
  return kSuccess;
}

Result get_tuning(void* context, int function, std::size_t bytes, int piped, float** table, int algorithms,
                  int protocols, int /*registered*/, int* channels) noexcept {
  if (context == nullptr || table == nullptr) return kSuccess;
  // NCCL passes an array of rows by this type.
  auto* const costs = reinterpret_cast<float*>(table);
  static_cast<const CommunicatorTuner*>(context)->choose(function, bytes, piped, costs, algorithms, protocols,
                                                         channels);
  return kSuccess;
}

Result close(void* context) noexcept {
  delete static_cast<CommunicatorTuner*>(context);
  return kSuccess;
}

}  // namespace
}  // namespace commtune::nccl_tuner

// By the names that NCCL looks for.
using namespace commtune::nccl_tuner;

const TunerV4 ncclTunerPlugin_v4 = {kName, init_v4, get_tuning, close};
const TunerV5 ncclTunerPlugin_v5 = {kName, init_v5, get_tuning, close};
const TunerV6 ncclTunerPlugin_v6 = {kName, init_v5, get_tuning, close, nullptr};
const TunerV6 ncclTunerPlugin_v7 = {kName, init_v5, get_tuning, close, nullptr};
