#include "api/cli/question_flags.h"

#include "api/cli/knob_flags.h"

namespace commtune::api {

void add_override_flags(CLI::App& command, Overrides& overrides) {
  const std::pair<Knob, double&> scales[] = {{knob::kBandwidthScale, overrides.bandwidth_scale},
                                             {knob::kLatencyScale, overrides.latency_scale},
                                             {knob::kDeviceSpeedScale, overrides.device_speed_scale},
                                             {knob::kGradientScale, overrides.gradient_scale}};
  for (const auto& [scale, target] : scales) add_knob(command, scale, target)->check(range_of(scale));
  add_knob(command, knob::kBatch, overrides.batch)->check(range_of(knob::kBatch));
}

void add_allocation_flags(CLI::App& command, Allocation& allocation) {
  add_knob(command, knob::kNodes, allocation.nodes);
  add_knob(command, knob::kNodeCount, allocation.node_count)->check(range_of(knob::kNodeCount));
  add_knob(command, knob::kDevicesPerNode, allocation.devices_per_node)
      ->check(range_of(knob::kDevicesPerNode));
}

}  // namespace commtune::api
