#include "perfmodel/topology.h"

#include <algorithm>
#include <cmath>

namespace commtune {

Topology topology_of(const Cluster& cluster, int workers) {
  Topology place{workers, 0, 1};
  int left = workers;
  const auto fill = [&](int slots) {
    const int here = std::min(left, std::max(1, slots));
    place.per_host = std::max(place.per_host, here);
    left -= here;
    ++place.hosts;
  };
  for (const Host& host : cluster.hosts) {
    if (left > 0) fill(host.slots);
  }
  if (left > 0 && cluster.hosts.size() == 1 && !cluster.links.contains(LinkClass::kInterHost)) {
    place.per_host = workers;
    return place;
  }
  const int slots = cluster.hosts.empty() ? 1 : cluster.hosts.front().slots;
  while (left > 0) fill(slots);
  return place;
}

double expected_maximum(int n) {
  if (n <= 1) return 0;
  // Quantile of the standard normal at Blom's plotting position, by Newton on the distribution function.
  const double p = (n - 0.375) / (n + 0.25);
  double x = std::sqrt(2 * std::log(static_cast<double>(n)));
  for (int i = 0; i < 50; ++i) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    const double step = (0.5 * std::erfc(-x / std::sqrt(2.0)) - p) / density;
    x -= std::clamp(step, -0.5, 0.5);
  }
  return x;
}

}  // namespace commtune
