#pragma once
// The fields of a question as requests have them: in a body, and those of them that a query may have.

#include "api/options.h"
#include "api/question/question.h"
#include "perfmodel/base/fields.h"

namespace commtune::api {

template <typename Visitor, fields::Of<Overrides> Given>
void visit_fields(Visitor& visit, Given& overrides) {
  visit_knob(visit, knob::kBandwidthScale, overrides.bandwidth_scale);
  visit_knob(visit, knob::kLatencyScale, overrides.latency_scale);
  visit_knob(visit, knob::kDeviceSpeedScale, overrides.device_speed_scale);
  visit_knob(visit, knob::kGradientScale, overrides.gradient_scale);
  visit.when_set(knob::kBatch.name, overrides.batch, whole(knob::kBatch));
}

template <typename Visitor, fields::Of<Seats> Given>
void visit_fields(Visitor& visit, Given& seats) {
  visit_knob(visit, knob::kWorkers, seats.workers);
  visit_knob(visit, knob::kNodes, seats.nodes);
  visit_knob(visit, knob::kNodeCount, seats.node_count);
  visit_knob(visit, knob::kDevicesPerNode, seats.devices_per_node);
  visit_knob(visit, knob::kServers, seats.limits.colocated_servers);
  visit_knob(visit, knob::kDedicatedServers, seats.limits.dedicated_servers);
  visit_knob(visit, knob::kHashed, seats.limits.hashed);
}

template <typename Visitor, fields::Of<tuner::VerifyLimits> Given>
void visit_limits(Visitor& visit, Given& limits) {
  visit_knob(visit, knob::kVerify, limits.plans);
  visit_knob(visit, knob::kVerifyBudget, limits.budget);
}

}  // namespace commtune::api
