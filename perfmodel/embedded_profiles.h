#pragma once
// The texts behind shipped_profiles.h. Their definition is made from perfmodel/profiles/*.json when building.

#include <span>
#include <string_view>

namespace commtune {

struct EmbeddedProfile {
  std::string_view name;
  std::span<const std::string_view> parts;  ///< of its JSON text, in order
};

std::span<const EmbeddedProfile> embedded_profiles();  ///< sorted by name

}  // namespace commtune
