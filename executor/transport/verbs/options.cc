#include "executor/transport/verbs/options.h"

#include <fmt/format.h>

#include "perfmodel/base/error.h"

namespace commtune {

void VerbsOptions::check() const {
  gid.check();
  if (eager.count > (std::uint64_t{1} << 20)) {
    throw Error(ErrorCode::kBadInput, fmt::format("eager = {} B: must be at most 1 MiB", eager.count));
  }
  if (chunk.count < 4096 || chunk.count > (std::uint64_t{1} << 30)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("chunk = {} B: must be between 4 KiB and 1 GiB", chunk.count));
  }
  if (silence_limit.count() < 0.1) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("silence_limit = {} s: must be at least 0.1 s", silence_limit.count()));
  }
  if (connect_timeout.count() <= 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("connect_timeout = {} s: must be positive", connect_timeout.count()));
  }
}

}  // namespace commtune
