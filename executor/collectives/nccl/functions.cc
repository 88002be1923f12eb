#include "executor/collectives/nccl/functions.h"

#include <fmt/format.h>

#include "executor/base/shared_library.h"

namespace commtune::nccl {
namespace {

constexpr const char* kFile = "libnccl.so.2";
/// Non-blocking communicators can be finalized and aborted as this needs it since then.
constexpr int kOldest = 21800;

Loaded load() {
  Loaded result;
  SharedLibrary file(kFile);
  if (!file.is_there()) {
    result.why_not =
        fmt::format("{} cannot be loaded here: is NCCL installed, and on LD_LIBRARY_PATH?", kFile);
    return result;
  }
  Functions& functions = result.functions;
#define COMMTUNE_NCCL_FIND(MEMBER, NAME) file.find(functions.MEMBER, #NAME);
  COMMTUNE_NCCL_FUNCTIONS(COMMTUNE_NCCL_FIND)
#undef COMMTUNE_NCCL_FIND
#define COMMTUNE_NCCL_FIND(MEMBER, NAME) file.find_newer(functions.MEMBER, #NAME);
  COMMTUNE_NCCL_NEWER_FUNCTIONS(COMMTUNE_NCCL_FIND)
#undef COMMTUNE_NCCL_FIND
  if (file.missing().empty()) functions.version(&result.version);
  if (!file.missing().empty()) {
    result.why_not = fmt::format("{} of this host has no {}: NCCL {} or newer is needed", kFile,
                                 file.missing(), version_text(kOldest));
  } else if (result.version < kOldest) {
    result.why_not = fmt::format("{} of this host is NCCL {}: {} or newer is needed", kFile,
                                 version_text(result.version), version_text(kOldest));
  }
  return result;
}

}  // namespace

const Loaded& loaded() {
  static const Loaded result = load();
  return result;
}

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10'000, version % 10'000 / 100, version % 100);
}

std::string words_of(ncclResult_t result, ncclComm_t communicator) {
  std::string text = functions().error_text(result);
  const char* const last = communicator == nullptr ? nullptr : functions().last_error(communicator);
  if (last != nullptr && *last != '\0') text += fmt::format(": {}", last);
  return text;
}

}  // namespace commtune::nccl
