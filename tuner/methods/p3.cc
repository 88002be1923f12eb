#include "tuner/methods/p3.h"

#include "tuner/methods/byte_scheduler.h"

namespace commtune::tuner {

Plan p3(const Planning& job, const RoadOption& option) {
  const Bytes slice{kSliceParameters * element_size(job.profile.type).count};
  return byte_scheduler(job, option, {slice, Bytes{0}, Barrier::kPerLayer, ServerChoice::kInTurn});
}

}  // namespace commtune::tuner
