#include "executor/roads/parameter_server/local_sum.h"

#include "executor/roads/all_reduce/inside_host.h"
#include "executor/roads/steps.h"

namespace commtune {
namespace {

/// Both ways in the distribute tag space: a server in this process takes whatever comes on the other one.
Tag there(const RoadMessage& message) { return lane_tag(TagSpace::kDistribute, message.number, 1); }
Tag back(const RoadMessage& message) { return lane_tag(TagSpace::kDistribute, message.number, 2); }

}  // namespace

Task push_pull_host_sum(RoadMessage message, const ParameterServer& road, Server* here) {
  const HostPlace place(message);
  co_await reduce_inside(message, place, there(message));
  if (place.owns()) {
    co_await push_pull_part(place.own_part(message), road, here);
  } else {
    message.report(Stage::kReduce);
  }
  co_await distribute_inside(message, place, back(message));
  message.report(Stage::kDistribute);
}

}  // namespace commtune
