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
  Task pushing;
  if (place.owns()) {
    pushing = push_pull_part(place.own_part(message), road, here);
    pushing.start();
  } else {
    message.report(Stage::kReduce);
  }
  // While this rank still pushes: an owner who is done sends its part, and where a send ends only with its
  // receive, answers of the server in its process wait behind that.
  Group parts;
  receive_parts(message, place, back(message), parts);
  if (pushing.valid()) co_await pushing.ended();
  Group sends;
  send_own_part(message, place, back(message), sends);
  co_await parts.empty();
  co_await sends.empty();
  message.report(Stage::kDistribute);
}

}  // namespace commtune
