#include "perfmodel/cost/plan_cost.h"

#include <utility>
#include <vector>

#include "perfmodel/base/error.h"

namespace commtune {

Cluster cast_to(Cluster cluster, WireFormat wire) {
  if (wire != WireFormat::kAsIs && !cluster.casts.contains(wire)) {
    throw Error(ErrorCode::kNotFound, "unknown for " + to_string(wire) +
                                          ": what casting and adding cost on " + "cluster " + cluster.name +
                                          " was not measured: probe it again");
  }
  cluster.wire = wire;
  std::erase_if(cluster.others, [&](const Cluster& other) {
    return wire != WireFormat::kAsIs && !other.casts.contains(wire);
  });
  for (Cluster& other : cluster.others) other.wire = wire;
  return cluster;
}

Profile cast_to(Profile profile, WireFormat wire) {
  if (wire == WireFormat::kAsIs) return profile;
  if (profile.type != DataType::kFloat32) {
    throw Error(ErrorCode::kBadInput, "wire = " + to_string(wire) + ": the gradients of " + profile.model +
                                          " are of " + to_string(profile.type) +
                                          ", and only those of float32 are cast");
  }
  profile.type = wire_type(wire, profile.type);
  for (Layer& layer : profile.layers) {
    for (Tensor& tensor : layer.tensors) tensor.bytes = bytes_on(wire, tensor.bytes);
  }
  return profile;
}

RoadCost plan_cost(const Plan& plan, const Cluster& cluster) {
  if (plan.wire == cluster.wire) return road_cost(plan.road, cluster, plan.workers);
  return road_cost(plan.road, cast_to(cluster, plan.wire), plan.workers);
}

}  // namespace commtune
