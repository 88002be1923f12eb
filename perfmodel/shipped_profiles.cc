#include "perfmodel/shipped_profiles.h"

#include <algorithm>

#include "perfmodel/base/json_reader.h"
#include "perfmodel/embedded_profiles.h"

namespace commtune {

std::vector<std::string> shipped_profile_names() {
  std::vector<std::string> names;
  for (const EmbeddedProfile& profile : embedded_profiles()) {
    names.emplace_back(profile.name);
  }
  return names;
}

std::optional<Profile> shipped_profile(std::string_view name) {
  const auto profiles = embedded_profiles();
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const EmbeddedProfile& profile) { return profile.name == name; });
  if (found == profiles.end()) {
    return std::nullopt;
  }
  std::string text;
  for (const std::string_view part : found->parts) {
    text += part;
  }
  return profile_from_json(parse_json(text, std::string(name) + ".json"));
}

}  // namespace commtune
