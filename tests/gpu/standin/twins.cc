#include "tests/gpu/standin/twins.h"

#include <array>
#include <string_view>

namespace commtune::standin {

const NamedTwin* find_twin(const char* name) {
  for (const std::span<const NamedTwin> twins : {memory_twins(), profile_twins(), load_twins()}) {
    for (const NamedTwin& twin : twins) {
      if (std::string_view(twin.name) == name) return &twin;
    }
  }
  return nullptr;
}

}  // namespace commtune::standin
