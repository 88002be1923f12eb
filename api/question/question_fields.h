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
  visit.when_set(fields::Field(knob::kBatch.name), overrides.batch, whole(knob::kBatch));
}

template <typename Visitor, fields::Of<Allocation> Given>
void visit_fields(Visitor& visit, Given& allocation) {
  visit_knob(visit, knob::kWorkers, allocation.workers);
  visit_knob(visit, knob::kNodes, allocation.nodes);
  visit_knob(visit, knob::kNodeCount, allocation.node_count);
  visit_knob(visit, knob::kDevicesPerNode, allocation.devices_per_node);
  visit_knob(visit, knob::kServers, allocation.limits.colocated_servers);
  visit_knob(visit, knob::kDedicatedServers, allocation.limits.dedicated_servers);
  visit_knob(visit, knob::kHashed, allocation.limits.hashed);
}

template <typename Visitor, fields::Of<CandidateAllocation> Given>
void visit_fields(Visitor& visit, Given& candidate) {
  visit("name", candidate.name, fields::Name{});
  visit(fields::optional("cluster"), candidate.cluster, fields::Name{});
  visit_fields(visit, candidate.allocation);
}

template <typename Visitor, fields::Of<tuner::VerifyLimits> Given>
void visit_limits(Visitor& visit, Given& limits) {
  visit_knob(visit, knob::kVerify, limits.plans);
  visit_knob(visit, knob::kVerifyBudget, limits.budget);
}

}  // namespace commtune::api
