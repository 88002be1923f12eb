#pragma once
// What the plugin says of one communicator's collectives.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/nccl/tuner_interface.h"
#include "perfmodel/nccl/tuning_table.h"

namespace commtune::nccl_tuner {

/// The variable that carries the table; the same on all ranks of a job.
inline constexpr const char* kTableVariable = "COMMTUNE_NCCL_TUNING";

class CommunicatorTuner {
 public:
  /// text     to_text() of a table; empty: there is none
  /// Whatever is wrong with it, NCCL's own choice stands, and problem() says what it is.
  CommunicatorTuner(std::string_view text, std::size_t ranks, std::size_t nodes);

  const std::string& problem() const { return problem_; }
  /// For NCCL's log.
  std::string summary() const;

  /// Makes the table's tuning the cheapest, and says its channels. Untouched where NCCL's own choice stands:
  /// sizes that were not measured, several collectives at once, a tuning that NCCL rules out here.
  void choose(int function, std::size_t bytes, int piped, float* costs, int algorithms, int protocols,
              int* channels) const;

 private:
  const NcclChoices* choices_of(int function) const;

  const std::size_t ranks_, nodes_;
  NcclTuningTable table_;
  std::string problem_;
};

}  // namespace commtune::nccl_tuner
