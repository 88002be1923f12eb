#pragma once
// Kernels' host twins: what the stand-in runs in place of a kernel, found by the kernel's name.

#include <cstddef>
#include <span>

namespace commtune::standin {

/// A launch of a kernel: arguments[i] points to the value of its parameter i.
struct Launch {
  unsigned grid = 1, block = 1;  ///< blocks, and threads of each
  void* const* arguments = nullptr;

  template <typename T>
  T& argument(std::size_t index) const {
    return *static_cast<T*>(arguments[index]);
  }
};

struct NamedTwin {
  const char* name;
  void (*run)(const Launch& launch);
  std::span<const std::size_t> parameter_bytes;  ///< of each parameter, which a launch copies
};

/// nullptr: there is none of this name.
const NamedTwin* find_twin(const char* name);

/// Of the kernels of executor/memory/cuda.
std::span<const NamedTwin> memory_twins();
/// Of those of probes/compute/cuda.
std::span<const NamedTwin> profile_twins();
/// Of those of probes/load/cuda.
std::span<const NamedTwin> load_twins();

struct Activity;
/// Of this process.
Activity& activity();

}  // namespace commtune::standin
