#include "executor/roads/all_reduce/hierarchical.h"

#include "executor/roads/all_reduce/inside_host.h"
#include "executor/roads/steps.h"

namespace commtune {
namespace {

/// What goes inside a host, apart from the rings of this message.
Tag inside(TagSpace space, const RoadMessage& message) { return lane_tag(space, message.number, 1); }

}  // namespace

Task hierarchical_reduce_scatter(RoadMessage message) {
  const HostPlace place(message);
  co_await reduce_inside(message, place, inside(TagSpace::kReduce, message));
  if (place.owns()) co_await ring_reduce_scatter(place.own_part(message), place.circle());
  message.report(Stage::kReduce);
}

Task hierarchical_all_gather(RoadMessage message) {
  const HostPlace place(message);
  if (place.owns()) co_await ring_all_gather(place.own_part(message), place.circle());
  co_await distribute_inside(message, place, inside(TagSpace::kDistribute, message));
  message.report(Stage::kDistribute);
}

Task hierarchical_all_reduce(RoadMessage message) {
  const HostPlace place(message);
  co_await reduce_inside(message, place, inside(TagSpace::kReduce, message));
  if (place.owns()) co_await ring_all_reduce(place.own_part(message), place.circle());
  co_await distribute_inside(message, place, inside(TagSpace::kDistribute, message));
  message.report(Stage::kDistribute);
}

}  // namespace commtune
