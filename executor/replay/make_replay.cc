#include "executor/replay/make_replay.h"

#include "executor/replay/cuda/gpu_replay.h"
#include "executor/replay/host_replay.h"

namespace commtune {

std::unique_ptr<SessionWorkload> make_replay(const Profile& profile, int rank, int workers, Result result,
                                             Memory& memory) {
  if (memory.on_host()) return std::make_unique<HostReplay>(profile, rank, workers, result);
  return make_gpu_replay(profile, rank, workers, result, memory);
}

}  // namespace commtune
