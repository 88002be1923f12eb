#include "executor/memory/cuda/driver.h"

#include <fmt/format.h>

#include "executor/base/shared_library.h"
#include "perfmodel/base/error.h"

namespace commtune::cuda {
namespace {

constexpr const char* kFile = "libcuda.so.1";

std::string words_of(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.error_name(result, &name);
  driver.error_text(result, &text);
  if (name == nullptr || text == nullptr) return fmt::format("error {}", static_cast<int>(result));
  return fmt::format("{} ({})", text, name);
}

Loaded load() {
  Loaded result;
  SharedLibrary file(kFile);
  if (!file.is_there()) {
    result.why_not = fmt::format("{} cannot be loaded here: is NVIDIA's driver installed?", kFile);
    return result;
  }
  Driver& driver = result.driver;
#define COMMTUNE_CUDA_FIND(MEMBER, NAME) file.find(driver.MEMBER, COMMTUNE_CUDA_SYMBOL(NAME));
  COMMTUNE_CUDA_FUNCTIONS(COMMTUNE_CUDA_FIND)
#undef COMMTUNE_CUDA_FIND
  if (!file.missing().empty()) {
    result.why_not =
        fmt::format("{} of this host has no {}: its driver is older than this commtune's CUDA {}.{}", kFile,
                    file.missing(), CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    return result;
  }
  int devices = 0;
  CUresult status = driver.init(0);
  if (status == CUDA_SUCCESS) status = driver.driver_version(&result.version);
  if (status == CUDA_SUCCESS) status = driver.device_count(&devices);
  if (status != CUDA_SUCCESS) {
    result.why_not = fmt::format("NVIDIA's driver says: {}", words_of(driver, status));
  } else if (devices == 0) {
    result.why_not = "NVIDIA's driver is here, and sees no GPU";
  }
  return result;
}

}  // namespace

const Loaded& loaded() {
  static const Loaded result = load();
  return result;
}

std::string words_of(CUresult result) { return words_of(driver(), result); }

void expect(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("{}: {}", call, words_of(result)));
}

}  // namespace commtune::cuda
