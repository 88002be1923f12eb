#include "executor/transport/verbs/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "executor/transport/verbs/grants.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

[[noreturn]] void refuse(std::string_view key, std::string_view value, std::string_view rule) {
  throw Error(ErrorCode::kBadInput, fmt::format("network options: {} = '{}': {}", key, value, rule));
}

int whole_number(std::string_view key, std::string_view value) {
  int number = 0;
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number < 0) refuse(key, value, "must be a whole number");
  return number;
}

bool on_or_off(std::string_view key, std::string_view value) {
  if (value != "on" && value != "off") refuse(key, value, "must be on or off");
  return value == "on";
}

void set(VerbsOptions& options, std::string_view key, std::string_view value) {
  if (key == "device") {
    if (value.empty()) refuse(key, value, "must be a device such as mlx5_0, or its port mlx5_0:1");
    options.gid.device = value;
  } else if (key == "gid-index") {
    options.gid.index = whole_number(key, value);
  } else if (key == "connections") {
    options.connections = whole_number(key, value);
  } else if (key == "relaxed-ordering") {
    options.relaxed_ordering = on_or_off(key, value);
  } else {
    refuse(key, value, "verbs knows device, gid-index, connections and relaxed-ordering");
  }
}

}  // namespace

void read_verbs_options(std::string_view text, VerbsOptions& options) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    const std::size_t equals = part.find('=');
    set(options, part.substr(0, equals), equals == part.npos ? "" : part.substr(equals + 1));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  options.check();
}

void VerbsOptions::check() const {
  gid.check();
  if (eager.count > (std::uint64_t{1} << 20)) {
    throw Error(ErrorCode::kBadInput, fmt::format("eager = {} B: must be at most 1 MiB", eager.count));
  }
  if (chunk.count < 4096 || chunk.count > (std::uint64_t{1} << 30)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("chunk = {} B: must be between 4 KiB and 1 GiB", chunk.count));
  }
  if (connections < 1 || connections > static_cast<int>(verbs::kMostConnections)) {
    throw Error(ErrorCode::kBadInput, fmt::format("connections = {}: must be between 1 and {}", connections,
                                                  verbs::kMostConnections));
  }
  if (silence_limit.count() < 0.1) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("silence_limit = {} s: must be at least 0.1 s", silence_limit.count()));
  }
  if (connect_timeout.count() <= 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("connect_timeout = {} s: must be positive", connect_timeout.count()));
  }
}

}  // namespace commtune
