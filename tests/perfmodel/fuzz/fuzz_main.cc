// A libFuzzer program for the target that COMMTUNE_FUZZ_TARGET names.

#include <cstddef>
#include <cstdint>

#include "tests/perfmodel/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  commtune::fuzz::COMMTUNE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
