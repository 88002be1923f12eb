#pragma once
// How NCCL may carry out a collective: its own words, as its variables NCCL_ALGO and NCCL_PROTO have them
// (NCCL's user guide, "Environment Variables").

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace commtune {

/// In the order of NCCL's own numbers, which begin behind kOwn.
enum class NcclAlgorithm : std::uint32_t {
  kOwn,  ///< NCCL's own choice
  kTree,
  kRing,
  kCollnetDirect,
  kCollnetChain,
  kNvls,
  kNvlsTree,
  kPat
};
/// The same.
enum class NcclProtocol : std::uint32_t { kOwn, kLl, kLl128, kSimple };

inline constexpr std::pair<std::string_view, NcclAlgorithm> kNcclAlgorithms[] = {
    {"Tree", NcclAlgorithm::kTree},
    {"Ring", NcclAlgorithm::kRing},
    {"CollnetDirect", NcclAlgorithm::kCollnetDirect},
    {"CollnetChain", NcclAlgorithm::kCollnetChain},
    {"NVLS", NcclAlgorithm::kNvls},
    {"NVLSTree", NcclAlgorithm::kNvlsTree},
    {"PAT", NcclAlgorithm::kPat}};
inline constexpr std::pair<std::string_view, NcclProtocol> kNcclProtocols[] = {
    {"LL", NcclProtocol::kLl}, {"LL128", NcclProtocol::kLl128}, {"Simple", NcclProtocol::kSimple}};

/// NCCL's channels, each of which keeps a multiprocessor busy (a CTA).
inline constexpr std::uint32_t kMostNcclChannels = 64;

/// Algorithm and protocol, both or neither, and how many channels.
struct NcclTuning {
  NcclAlgorithm algorithm = NcclAlgorithm::kOwn;
  NcclProtocol protocol = NcclProtocol::kOwn;
  std::uint32_t channels = 0;  ///< 0: as many as NCCL takes by itself; at most kMostNcclChannels
  bool is_own_choice() const { return algorithm == NcclAlgorithm::kOwn; }
  auto operator<=>(const NcclTuning&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm of 14
};

/// As NCCL_ALGO and NCCL_PROTO have them; of what is not NCCL's own choice.
std::string_view name_of(NcclAlgorithm algorithm);
std::string_view name_of(NcclProtocol protocol);

/// "Ring+LL128", "Ring+Simple+8"; "" where the choice is NCCL's own.
std::string to_string(const NcclTuning& tuning);
/// nullopt for a text that to_string() does not write.
std::optional<NcclTuning> nccl_tuning_named(std::string_view text);

/// "Ring+LL128 or Tree+Simple+8, of Tree, Ring, ... and LL, LL128, Simple": for errors.
std::string nccl_tuning_rule();

}  // namespace commtune
