#include "probes/compute/cuda/library_folders.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

namespace commtune::compute {
namespace {

namespace fs = std::filesystem;

/// Folders in a folder, in order; none where it cannot be read.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// "/opt/venv" for "/opt/venv/bin/python3". A link is not followed: an environment's leads out of it.
std::optional<fs::path> prefix_of_python(std::string_view path) {
  std::istringstream parts{std::string(path)};
  for (std::string part; std::getline(parts, part, ':');) {
    std::error_code error;
    if (!part.empty() && fs::exists(fs::path(part) / "python3", error)) return fs::path(part).parent_path();
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> python_library_folders(std::string_view path) {
  const std::optional<fs::path> prefix = prefix_of_python(path);
  std::vector<std::string> folders;
  if (!prefix) return folders;
  for (const fs::path& python : folders_in(*prefix / "lib")) {
    if (!python.filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& package : folders_in(python / packages / "nvidia")) {
        std::error_code error;
        if (fs::is_directory(package / "lib", error)) folders.push_back((package / "lib").string());
      }
    }
  }
  return folders;
}

}  // namespace commtune::compute
