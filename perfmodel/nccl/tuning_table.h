#pragma once
// Which tuning of NCCL's is the fastest for which sizes, as the tuner plugin gets it: one line of text that a
// job's environment carries, so that all ranks of the job have the same.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/nccl/tuning.h"

namespace commtune {

enum class NcclCollective : std::uint32_t { kAllReduce, kReduceScatter, kAllGather };

inline constexpr std::pair<std::string_view, NcclCollective> kNcclCollectives[] = {
    {"AllReduce", NcclCollective::kAllReduce},
    {"ReduceScatter", NcclCollective::kReduceScatter},
    {"AllGather", NcclCollective::kAllGather}};

std::string_view name_of(NcclCollective collective);

/// Sizes from first to last, both among them, of the whole buffer: all that is summed, scattered or gathered.
struct NcclRange {
  Bytes first, last;
  NcclTuning tuning;
  Seconds expected{};  ///< of the last size
  bool operator==(const NcclRange&) const = default;
};

/// One collective among so many ranks on so many hosts (NCCL says nodes).
struct NcclChoices {
  NcclCollective collective = NcclCollective::kAllReduce;
  int ranks = 2, nodes = 1;
  std::vector<NcclRange> ranges;  ///< by size, apart from each other; between and beyond them NCCL chooses
  bool operator==(const NcclChoices&) const = default;
};

struct NcclTuningTable {
  std::vector<NcclChoices> choices;

  const NcclChoices* find(NcclCollective collective, std::uint64_t ranks, std::uint64_t nodes) const;
  bool operator==(const NcclTuningTable&) const = default;
};

/// nullptr: the choice is NCCL's own.
const NcclRange* range_of(const NcclChoices& choices, Bytes size);

/// "nccl-tuning-1:AllReduce/4/2/4096-65536=Ring+LL@21400/...:0123456789abcdef": of each of the choices
/// collective, ranks, nodes, then ranges with nanoseconds at their last size; a digest ends it. Times are
/// kept to the nanosecond.
std::string to_text(const NcclTuningTable& table);
/// throws  Error{kBadInput} naming the part and the rule, for a text that was cut off or changed as well
NcclTuningTable nccl_tuning_table_from_text(std::string_view text);

}  // namespace commtune
