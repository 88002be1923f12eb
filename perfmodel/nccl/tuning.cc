#include "perfmodel/nccl/tuning.h"

#include <charconv>
#include <span>

namespace commtune {
namespace {

template <typename Enum>
std::string_view name_in(std::span<const std::pair<std::string_view, Enum>> table, Enum value) {
  for (const auto& [name, known] : table) {
    if (known == value) return name;
  }
  return {};
}

template <typename Enum>
std::optional<Enum> find_in(std::span<const std::pair<std::string_view, Enum>> table, std::string_view text) {
  for (const auto& [name, known] : table) {
    if (name == text) return known;
  }
  return std::nullopt;
}

template <typename Enum>
std::string listed(std::span<const std::pair<std::string_view, Enum>> table) {
  std::string names;
  for (const auto& [name, known] : table) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

using Algorithms = std::span<const std::pair<std::string_view, NcclAlgorithm>>;
using Protocols = std::span<const std::pair<std::string_view, NcclProtocol>>;

std::optional<std::uint32_t> channels_of(std::string_view text) {
  std::uint32_t channels = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), channels);
  const bool whole = error == std::errc{} && end == text.data() + text.size() && !text.starts_with('0');
  if (!whole || channels > kMostNcclChannels) return std::nullopt;
  return channels;
}

/// What is before the first '+', which is taken off with it.
std::string_view first_word(std::string_view& text) {
  const std::size_t end = text.find('+');
  const std::string_view word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return word;
}

}  // namespace

std::string_view name_of(NcclAlgorithm algorithm) { return name_in(Algorithms(kNcclAlgorithms), algorithm); }
std::string_view name_of(NcclProtocol protocol) { return name_in(Protocols(kNcclProtocols), protocol); }

std::string to_string(const NcclTuning& tuning) {
  if (tuning.is_own_choice()) return {};
  std::string text(name_of(tuning.algorithm));
  text.append("+").append(name_of(tuning.protocol));
  if (tuning.channels > 0) text.append("+").append(std::to_string(tuning.channels));
  return text;
}

std::optional<NcclTuning> nccl_tuning_named(std::string_view text) {
  if (text.empty()) return NcclTuning{};
  const bool ends_short = text.ends_with('+');
  const auto algorithm = find_in(Algorithms(kNcclAlgorithms), first_word(text));
  const auto protocol = find_in(Protocols(kNcclProtocols), first_word(text));
  if (!algorithm || !protocol || ends_short) return std::nullopt;
  if (text.empty()) return NcclTuning{*algorithm, *protocol, 0};
  const auto channels = channels_of(text);
  if (!channels) return std::nullopt;
  return NcclTuning{*algorithm, *protocol, *channels};
}

std::string nccl_tuning_rule() {
  return "Ring+LL128 or Tree+Simple+8, of " + listed(Algorithms(kNcclAlgorithms)) + " and " +
         listed(Protocols(kNcclProtocols)) + ", with at most " + std::to_string(kMostNcclChannels) +
         " channels";
}

}  // namespace commtune
