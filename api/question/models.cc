#include "api/question/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/text.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/shipped_profiles.h"

namespace commtune::api {
namespace {

constexpr std::uintmax_t kLargestFile = 256U << 20U;

}  // namespace

bool names_file(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".json");
}

std::string read_text_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw Error(ErrorCode::kNotFound, fmt::format("{}: {}", path.string(), error.message()));
  if (size > kLargestFile)
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: {} B, must be at most {} B", path.string(), size, kLargestFile));
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw Error(ErrorCode::kNotFound, fmt::format("{}: {}", path.string(), std::strerror(errno)));
  return text;
}

nlohmann::json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_text_file(path), path.string());
}

ProfileSummary summary_of(const Profile& profile) {
  ProfileSummary row;
  row.digest = digest(profile);
  row.layout = layout_digest(profile);
  row.model = profile.model;
  row.batch = profile.batch;
  row.layers = static_cast<int>(profile.layers.size());
  row.tensors = static_cast<int>(profile.tensor_count());
  row.gradient_bytes = profile.gradient_bytes();
  row.compute = profile.forward() + profile.backward() + profile.update();
  row.how = profile.origin.how;
  return row;
}

Profile find_profile(const Store& store, const std::string& model) {
  if (names_file(model)) {
    const nlohmann::json document = read_json_file(model);
    try {
      return profile_from_json(document);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", model, error.what()));
    }
  }
  if (auto profile = shipped_profile(model)) return std::move(*profile);
  if (const auto stored = store.find_profile(model)) return stored->profile;
  if (const auto stored = store.find_profile_of_layout(model)) return stored->profile;
  const std::vector<std::string> names = shipped_profile_names();
  throw Error(
      ErrorCode::kNotFound,
      fmt::format("model \"{}\": no such profile{}; shipped are {}, or name a commtune/profile/1 file", model,
                  did_you_mean(model, names), fmt::join(names, ", ")));
}

}  // namespace commtune::api
