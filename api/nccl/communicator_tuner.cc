#include "api/nccl/communicator_tuner.h"

#include <exception>

namespace commtune::nccl_tuner {
namespace {

std::optional<NcclCollective> collective_of(int function) {
  switch (function) {
    case kAllReduce:
      return NcclCollective::kAllReduce;
    case kReduceScatter:
      return NcclCollective::kReduceScatter;
    case kAllGather:
      return NcclCollective::kAllGather;
    default:
      return std::nullopt;
  }
}

/// NCCL's number of what is not its own choice.
template <typename Enum>
int number_of(Enum value) {
  return static_cast<int>(value) - 1;
}

}  // namespace

CommunicatorTuner::CommunicatorTuner(std::string_view text, std::size_t ranks, std::size_t nodes)
    : ranks_(ranks), nodes_(nodes) {
  if (text.empty()) return;
  try {
    table_ = nccl_tuning_table_from_text(text);
  } catch (const std::exception& error) {
    problem_ = std::string(kTableVariable) + ": " + error.what();
  }
}

const NcclChoices* CommunicatorTuner::choices_of(int function) const {
  const auto collective = collective_of(function);
  return collective ? table_.find(*collective, ranks_, nodes_) : nullptr;
}

std::string CommunicatorTuner::summary() const {
  std::size_t ranges = 0;
  for (const int function : {kAllReduce, kReduceScatter, kAllGather}) {
    if (const NcclChoices* const choices = choices_of(function)) ranges += choices->ranges.size();
  }
  return "commtune: " + std::to_string(ranges) + " ranges of sizes for " + std::to_string(ranks_) +
         " ranks on " + std::to_string(nodes_) + " nodes" + (ranges == 0 ? ": NCCL's own choice stands" : "");
}

void CommunicatorTuner::choose(int function, std::size_t bytes, int piped, float* costs, int algorithms,
                               int protocols, int* channels) const {
  const NcclChoices* const choices = piped > 1 ? nullptr : choices_of(function);
  const NcclRange* const range = choices == nullptr ? nullptr : range_of(*choices, Bytes{bytes});
  if (range == nullptr) return;
  const int algorithm = number_of(range->tuning.algorithm), protocol = number_of(range->tuning.protocol);
  if (algorithm >= algorithms || protocol >= protocols) return;
  float& cost = costs[algorithm * protocols + protocol];
  if (cost == kIgnored) return;
  cost = 0;
  if (range->tuning.channels > 0) *channels = static_cast<int>(range->tuning.channels);
}

}  // namespace commtune::nccl_tuner
