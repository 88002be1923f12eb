#include "store/values.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/road_json.h"

namespace commtune {

std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text_of_members(const std::map<std::string, std::string>& members) {
  std::string text;
  for (const auto& [name, value] : members)
    text.append(text.empty() ? "{" : ",").append(json_text(name)).append(":").append(value);
  return text.empty() ? "{}" : text + "}";
}

std::string json_text(const nlohmann::json& object, const std::map<std::string, std::string>& written) {
  std::map<std::string, std::string> members;
  for (const auto& [name, value] : object.items()) {
    const auto text = written.find(name);
    members.emplace(name, text == written.end() ? json_text(value) : text->second);
  }
  return json_text_of_members(members);
}

namespace sql {
namespace {

constexpr std::array kOperations = {Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
                                    Operation::kPushPull,  Operation::kPush,          Operation::kPull};
constexpr std::array kWorkStates = {WorkState::kRunning, WorkState::kComplete, WorkState::kInterrupted,
                                    WorkState::kFailed};

constexpr std::array kJobStates = {JobState::kQueued, JobState::kRunning,   JobState::kComplete,
                                   JobState::kFailed, JobState::kCancelled, JobState::kInterrupted};

template <class Enum, std::size_t kSize>
Enum enumerator(const std::array<Enum, kSize>& all, const std::string& text) {
  for (const Enum candidate : all) {
    if (to_string(candidate) == text) {
      return candidate;
    }
  }
  throw Error(ErrorCode::kBadInput, "\"" + text + "\": unknown word");
}

nlohmann::json column_json(Query& query) { return nlohmann::json::parse(query.column_text()); }

/// Between a double and the 8 bytes that stand for it in the file, lowest first.
std::uint64_t little_endian(std::uint64_t bits) {
  return std::endian::native == std::endian::little ? bits : __builtin_bswap64(bits);
}

}  // namespace

void put(Query& query, Bytes value) {
  if (value.count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw Error(ErrorCode::kBadInput, std::to_string(value.count) + " bytes: must be less than 2^63");
  }
  query.bind_integer(static_cast<std::int64_t>(value.count));
}

void put(Query& query, const nlohmann::json& value) {
  if (value.is_null()) {
    query.bind_null();
  } else {
    query.bind_text(json_text(value));
  }
}

void put(Query& query, const Road& value) { query.bind_text(json_text(to_json(value))); }
void put(Query& query, Operation value) { query.bind_text(to_string(value)); }
void put(Query& query, WorkState value) { query.bind_text(to_string(value)); }

void put(Query& query, const std::vector<Host>& value) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const Host& host : value) {
    hosts.push_back({{"name", host.name}, {"slots", host.slots}});
  }
  query.bind_text(json_text(hosts));
}

void put(Query& query, const std::map<std::string, std::string>& value) {
  query.bind_text(json_text(nlohmann::json(value)));
}

void put(Query& query, const std::vector<double>& value) {
  std::vector<std::uint64_t> words;
  words.reserve(value.size());
  for (const double number : value) {
    words.push_back(little_endian(std::bit_cast<std::uint64_t>(number)));
  }
  query.bind_blob(std::as_bytes(std::span(words)));
}

void put(Query& query, const std::vector<std::string>& value) {
  query.bind_text(json_text(nlohmann::json(value)));
}

void put(Query& query, const std::vector<std::byte>& value) { query.bind_blob(value); }
void put(Query& query, JobState value) { query.bind_text(to_string(value)); }

void get(Query& query, nlohmann::json& value) {
  if (query.column_is_null()) {
    query.skip_column();
    value = nullptr;
  } else {
    value = column_json(query);
  }
}

void get(Query& query, Road& value) {
  const nlohmann::json json = column_json(query);
  value = road_from_json(JsonPlace(json));
}

void get(Query& query, Operation& value) { value = enumerator(kOperations, query.column_text()); }
void get(Query& query, WorkState& value) { value = enumerator(kWorkStates, query.column_text()); }

void get(Query& query, std::vector<Host>& value) {
  value.clear();
  for (const nlohmann::json& host : column_json(query)) {
    value.push_back({host.at("name").get<std::string>(), host.at("slots").get<int>()});
  }
}

void get(Query& query, std::map<std::string, std::string>& value) {
  value = column_json(query).get<std::map<std::string, std::string>>();
}

void get(Query& query, std::vector<double>& value) {
  const std::span<const std::byte> blob = query.column_blob();
  value.resize(blob.size() / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < value.size(); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, blob.data() + i * sizeof word, sizeof word);
    value[i] = std::bit_cast<double>(little_endian(word));
  }
}

void get(Query& query, std::vector<std::string>& value) {
  value = column_json(query).get<std::vector<std::string>>();
}

void get(Query& query, std::vector<std::byte>& value) {
  const std::span<const std::byte> blob = query.column_blob();
  value.assign(blob.begin(), blob.end());
}

void get(Query& query, JobState& value) { value = enumerator(kJobStates, query.column_text()); }

void get(Query& query, Profile& value) { value = profile_from_json(column_json(query)); }
void get(Query& query, Cluster& value) { value = cluster_from_json(column_json(query)); }
void get(Query& query, Plan& value) { value = plan_from_json(column_json(query)); }

}  // namespace sql
}  // namespace commtune
