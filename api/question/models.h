#pragma once
// From what a user calls a model to its profile.

#include <filesystem>
#include <string>

#include "perfmodel/profile.h"
#include "store/store.h"

namespace commtune::api {

/// A shipped profile's name, a path to a commtune/profile/1 file (anything with '/' or ending in ".json"), or
/// the digest of a profile in the store, or a layout digest: the newest profile with this layout. Throws
/// Error{kNotFound} with the closest shipped name, Error{kBadInput} naming the file and the place in it.
Profile find_profile(const Store& store, const std::string& model);

/// What a list says of a profile that is not stored: its id is 0.
ProfileSummary summary_of(const Profile& profile);

/// Whether a user names a file: anything with '/' or ending in ".json".
bool names_file(const std::string& text);

/// Reads a file of at most 256 MiB. Throws Error{kNotFound} or Error{kBadInput} naming it.
std::string read_text_file(const std::filesystem::path& path);

/// Reads a JSON file of at most 256 MiB. Throws Error{kNotFound} or Error{kBadInput} naming it.
nlohmann::json read_json_file(const std::filesystem::path& path);

}  // namespace commtune::api
