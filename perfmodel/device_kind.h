#pragma once
// What gradients lie on and layers run on.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace commtune {

enum class DeviceKind : std::uint8_t {
  kHost,  ///< the processor's memory
  kCuda,  ///< a GPU of NVIDIA's for each rank: its number among the ranks of its host, modulo their number
};

inline constexpr std::pair<std::string_view, DeviceKind> kDeviceKinds[] = {{"cpu", DeviceKind::kHost},
                                                                           {"cuda", DeviceKind::kCuda}};

inline std::string to_string(DeviceKind kind) {
  return std::string(kDeviceKinds[static_cast<int>(kind)].first);
}

}  // namespace commtune
