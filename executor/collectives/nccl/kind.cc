#include "executor/collectives/library_kind.h"
#include "perfmodel/nccl/tuning.h"

COMMTUNE_DECLARE_LIBRARY(nccl)

namespace commtune::nccl {

namespace {

std::optional<std::string> wrong_options(std::string_view options) {
  if (nccl_tuning_named(options)) return std::nullopt;
  return "its options, \"" + std::string(options) + "\", must be as in " + nccl_tuning_rule();
}

}  // namespace

const LibraryKind kKind{.name = "nccl", .on_host = false, .wrong_options = wrong_options};

}  // namespace commtune::nccl
