#pragma once
// How NCCL is told which algorithm and protocol to take: by its variables, which it reads while a
// communicator is made. For the sources of this folder.

#include <optional>
#include <string>

#include "perfmodel/nccl/tuning.h"

namespace commtune::nccl {

/// For communicators that are made, and have connected, while it lives; afterwards the process has the
/// variables that it had before. They are the whole process's: no other communicator may be made meanwhile.
class ToldTuning {
 public:
  /// NCCL's own choice: nothing is set, and what the user has set holds.
  explicit ToldTuning(const NcclTuning& tuning);
  ~ToldTuning();
  ToldTuning(const ToldTuning&) = delete;
  ToldTuning& operator=(const ToldTuning&) = delete;

 private:
  const bool told_;
  std::optional<std::string> algorithm_before_, protocol_before_;
};

}  // namespace commtune::nccl
