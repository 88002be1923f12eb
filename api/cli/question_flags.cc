#include "api/cli/question_flags.h"

namespace commtune::api {

void add_override_flags(CLI::App& command, Overrides& overrides) {
  const CLI::Range scales(1e-3, 1e3);
  command
      .add_option("--bandwidth-scale", overrides.bandwidth_scale,
                  "what if the network were so many times as fast. Such a plan belongs to no fit")
      ->check(scales)
      ->type_name("FACTOR");
  command
      .add_option("--latency-scale", overrides.latency_scale,
                  "what if its latency were so many times as long")
      ->check(scales)
      ->type_name("FACTOR");
  command
      .add_option("--device-speed-scale", overrides.device_speed_scale,
                  "what if the devices were so many times as fast")
      ->check(scales)
      ->type_name("FACTOR");
  command
      .add_option("--gradient-scale", overrides.gradient_scale,
                  "what if gradients had so many times as many bytes")
      ->check(scales)
      ->type_name("FACTOR");
  command
      .add_option("--batch", overrides.batch,
                  "what if a worker had so many samples; layer times grow in proportion")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("SAMPLES");
}

void add_allocation_flags(CLI::App& command, Seats& seats) {
  command
      .add_option("--nodes", seats.nodes,
                  "plan for these hosts of the cluster only, as n1,n2 or tux[0-3,12] (default: all)")
      ->type_name("LIST");
  command
      .add_option("--node-count", seats.node_count,
                  "plan for so many hosts, all like the first; more than the cluster has are assumed")
      ->check(CLI::Range(1, 4096));
  command.add_option("--devices-per-node", seats.devices_per_node, "workers a host (default: its slots)")
      ->check(CLI::Range(1, 1024));
}

}  // namespace commtune::api
