// A libFuzzer program for the target that COMMTUNE_FUZZ_TARGET names.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace commtune::fuzz {
void COMMTUNE_FUZZ_TARGET(std::string_view text);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  commtune::fuzz::COMMTUNE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
