#pragma once

#include <string_view>

namespace commtune::api {

/// Of the programs and of what they store: CMake's project version.
inline constexpr std::string_view kVersion = COMMTUNE_VERSION;

}  // namespace commtune::api
