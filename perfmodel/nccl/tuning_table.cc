#include "perfmodel/nccl/tuning_table.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "perfmodel/base/digest.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

constexpr std::string_view kFormat = "nccl-tuning-1";
constexpr std::size_t kLongestText = 1 << 16;  // bytes; an environment has a megabyte or two for all
constexpr std::uint64_t kMostRanks = 1'000'000;
constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 62;
constexpr std::uint64_t kLongestTime = std::uint64_t{3600} * 1'000'000'000;  // nanoseconds
constexpr std::size_t kShown = 64;  // bytes of a wrong part that an error repeats

[[noreturn]] void fail(std::string_view part, const std::string& rule) {
  throw Error(ErrorCode::kBadInput,
              "NCCL tuning, \"" + std::string(part.substr(0, kShown)) + "\": expected " + rule);
}

std::vector<std::string_view> split(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(between, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::uint64_t whole(std::string_view text, std::string_view part, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    fail(part, "\"" + std::string(text.substr(0, kShown)) + "\" to be a whole number from " +
                   std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

NcclTuning tuning_in(std::string_view text, std::string_view part) {
  const auto tuning = nccl_tuning_named(text);
  if (!tuning || tuning->is_own_choice()) fail(part, nccl_tuning_rule());
  return *tuning;
}

/// "Ring+LL@21400"
std::pair<NcclTuning, Seconds> timed_tuning(std::string_view text, std::string_view part) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) fail(part, "a tuning, '@' and nanoseconds");
  const std::uint64_t nanoseconds = whole(text.substr(at + 1), part, 0, kLongestTime);
  return {tuning_in(text.substr(0, at), part), Seconds{static_cast<double>(nanoseconds) * 1e-9}};
}

void read_range(NcclChoices& choices, std::string_view part) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) fail(part, "sizes, '=' and a tuning");
  const std::string_view sizes = part.substr(0, equals);
  const std::size_t dash = sizes.find('-');
  if (dash == std::string_view::npos) fail(part, "two sizes with '-' between them before '='");
  const std::uint64_t after =
      choices.ranges.empty() ? 0 : choices.ranges.back().last.count + 1;  // of the range before
  const std::uint64_t first = whole(sizes.substr(0, dash), part, after, kLargestSize);
  const std::uint64_t last = whole(sizes.substr(dash + 1), part, first, kLargestSize);
  const auto [tuning, time] = timed_tuning(part.substr(equals + 1), part);
  choices.ranges.push_back({Bytes{first}, Bytes{last}, tuning, time});
}

NcclChoices choices_in(std::string_view section) {
  const std::vector<std::string_view> parts = split(section, '/');
  if (parts.size() < 3) fail(section, "a collective, ranks and nodes with '/' between them");
  NcclChoices choices;
  bool known = false;
  for (const auto& [name, collective] : kNcclCollectives) {
    if (name != parts[0]) continue;
    choices.collective = collective;
    known = true;
  }
  if (!known) fail(section, "AllReduce, ReduceScatter or AllGather first");
  choices.ranks = static_cast<int>(whole(parts[1], section, 1, kMostRanks));
  choices.nodes = static_cast<int>(whole(parts[2], section, 1, static_cast<std::uint64_t>(choices.ranks)));
  for (const std::string_view part : std::span(parts).subspan(3)) read_range(choices, part);
  return choices;
}

std::string nanoseconds(Seconds time) { return std::to_string(std::llround(time.count() * 1e9)); }

std::string digest_of(std::string_view text) { return Digest().add(text).hex(); }

}  // namespace

std::string_view name_of(NcclCollective collective) {
  return kNcclCollectives[static_cast<std::size_t>(collective)].first;
}

const NcclChoices* NcclTuningTable::find(NcclCollective collective, std::uint64_t ranks,
                                         std::uint64_t nodes) const {
  for (const NcclChoices& each : choices) {
    const bool same = each.collective == collective && static_cast<std::uint64_t>(each.ranks) == ranks &&
                      static_cast<std::uint64_t>(each.nodes) == nodes;
    if (same) return &each;
  }
  return nullptr;
}

const NcclRange* range_of(const NcclChoices& choices, Bytes size) {
  for (const NcclRange& range : choices.ranges) {
    if (range.first <= size && size <= range.last) return &range;
  }
  return nullptr;
}

std::string to_text(const NcclTuningTable& table) {
  std::string text(kFormat);
  for (const NcclChoices& choices : table.choices) {
    text.append(":").append(name_of(choices.collective));
    text.append("/").append(std::to_string(choices.ranks));
    text.append("/").append(std::to_string(choices.nodes));
    for (const NcclRange& range : choices.ranges) {
      text.append("/").append(std::to_string(range.first.count));
      text.append("-").append(std::to_string(range.last.count));
      text.append("=").append(to_string(range.tuning));
      text.append("@").append(nanoseconds(range.expected));
    }
  }
  const std::string digest = digest_of(text);
  return text.append(":").append(digest);
}

NcclTuningTable nccl_tuning_table_from_text(std::string_view text) {
  if (text.size() > kLongestText) fail(text, "at most " + std::to_string(kLongestText) + " bytes");
  const std::size_t end = text.rfind(':');
  if (end == std::string_view::npos || text.substr(end + 1) != digest_of(text.substr(0, end)))
    fail(text, "the digest of what is before it at the end: the text was cut off or changed");
  const std::vector<std::string_view> sections = split(text.substr(0, end), ':');
  if (sections.front() != kFormat) fail(sections.front(), std::string(kFormat) + " first");
  NcclTuningTable table;
  for (const std::string_view section : std::span(sections).subspan(1)) {
    NcclChoices choices = choices_in(section);
    const auto nodes = static_cast<std::uint64_t>(choices.nodes);
    if (table.find(choices.collective, static_cast<std::uint64_t>(choices.ranks), nodes) != nullptr)
      fail(section, "each collective, ranks and nodes once");
    table.choices.push_back(std::move(choices));
  }
  return table;
}

}  // namespace commtune
