#include "tuner/methods/byteps.h"

#include "tuner/messages.h"
#include "tuner/methods/byte_scheduler.h"
#include "tuner/methods/wfbp.h"

namespace commtune::tuner {

Plan byteps(const Planning& job, const RoadOption& option) {
  return byte_scheduler(job, option, {kServerPartition, kUnlimited, Barrier::kFull, ServerChoice::kHash});
}

}  // namespace commtune::tuner
