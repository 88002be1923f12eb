// In a build without CUDA's headers.

#include "executor/collectives/library_kind.h"
#include "perfmodel/base/error.h"

COMMTUNE_DECLARE_LIBRARY(nccl)

namespace commtune::nccl {

std::optional<std::string> unusable(const Communicator& /*communicator*/) {
  return "this commtune was built without CUDA";
}

std::unique_ptr<CollectiveLibrary> make(const LibraryPlace& place, int /*ranks*/) {
  throw Error(ErrorCode::kUnavailable, *unusable(place.communicator));
}

}  // namespace commtune::nccl
