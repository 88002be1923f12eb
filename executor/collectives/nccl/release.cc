#include "executor/collectives/nccl/release.h"

#include "executor/collectives/nccl/functions.h"

namespace commtune {

std::string nccl_release() {
  return nccl::loaded().why_not.empty() ? nccl::version_text(nccl::loaded().version) : "";
}

}  // namespace commtune
