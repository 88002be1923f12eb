#pragma once
// Profiles that come with the library, embedded from perfmodel/profiles/*.json. Each says in its origin where
// its times come from and what to be careful about.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/profile.h"

namespace commtune {

/// Sorted. Those that end in _v100 are models that are there twice: by the times of another source.
std::vector<std::string> shipped_profile_names();

/// The profile of that name, or nothing. Parses its text: about a millisecond; callable from any thread.
std::optional<Profile> shipped_profile(std::string_view name);

}  // namespace commtune
