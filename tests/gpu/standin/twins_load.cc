// Twin of the kernel of probes/load/cuda: it takes its time, longer while collectives are under way.

#include <cstdint>

#include "tests/gpu/standin/cuda_objects.h"
#include "tests/gpu/standin/settings.h"
#include "tests/gpu/standin/twins.h"

namespace commtune::standin {
namespace {

constexpr double kSecondsPerRound = 1e-7;

void compute(const Launch& launch) {
  const auto rounds = static_cast<double>(launch.argument<std::uint64_t>(0));
  ++activity().layers;
  take_time_beside(rounds * kSecondsPerRound, activity().collectives, setting("INTERFERENCE", 0));
  --activity().layers;
}

constexpr std::size_t kRoundsStopAndNever[] = {8, 4, 8};

constexpr NamedTwin kTwins[] = {{"commtune_compute", compute, kRoundsStopAndNever}};

}  // namespace

std::span<const NamedTwin> load_twins() { return kTwins; }

Activity& activity() {
  static Activity of_process;
  return of_process;
}

}  // namespace commtune::standin
