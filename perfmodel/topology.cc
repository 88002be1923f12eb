#include "perfmodel/topology.h"

#include <algorithm>
#include <cmath>

namespace commtune {

namespace {

void append(std::vector<HostRow>& rows, int hosts, int ranks, const HostPace& pace) {
  if (!rows.empty() && rows.back().ranks == ranks && rows.back().pace == pace) {
    rows.back().hosts += hosts;
  } else {
    rows.push_back({hosts, ranks, pace});
  }
}

HostPace slower(const HostPace& a, const HostPace& b) {
  return {std::max(a.latency, b.latency), std::max(a.time_per_byte, b.time_per_byte),
          std::max(a.compute, b.compute)};
}

/// Takes workers for hosts of so many slots, as many hosts as are offered.
int fill(Topology& place, int left, int hosts, int slots, const HostPace& pace) {
  const int whole = std::min(hosts, left / slots), rest = whole < hosts ? left % slots : 0;
  if (whole > 0) append(place.rows, whole, slots, pace);
  if (rest > 0) append(place.rows, 1, rest, pace);
  return left - whole * slots - rest;
}

/// The totals of the rows.
void sum_up(Topology& place) {
  place.hosts = 0;
  place.per_host = 1;
  if (!place.rows.empty()) {
    place.slowest = place.rows.front().pace;
    place.fewest = place.rows.front().ranks;
  }
  for (const HostRow& row : place.rows) {
    place.hosts += row.hosts;
    place.per_host = std::max(place.per_host, row.ranks);
    place.fewest = std::min(place.fewest, row.ranks);
    place.slowest = slower(place.slowest, row.pace);
  }
}

/// Servers in the first workers' processes.
std::vector<Card> colocated_cards(const Topology& place, double servers, bool inside) {
  std::vector<Card> cards;
  for (const HostRow& row : place.rows) {
    const double ranks = inside ? 1 : row.ranks, hosts = inside ? row.ranks : row.hosts;
    const double full = std::min(hosts, std::floor(servers / ranks));
    if (full > 0) cards.push_back({ranks, ranks, row.pace});
    servers -= full * ranks;
    if (full == hosts) continue;
    if (servers > 0) cards.push_back({ranks, servers, row.pace});
    if (hosts - full > (servers > 0 ? 1 : 0)) cards.push_back({ranks, 0, row.pace});
    servers = 0;
  }
  return cards;
}

std::vector<Card> dedicated_cards(const Topology& place, int servers, bool inside) {
  std::vector<Card> cards = colocated_cards(place, 0, inside);
  for (const HostRow& row : place.spare) {
    for (int host = 0; host < row.hosts && servers > 0; ++host) {
      const int here = std::min(servers, row.ranks);
      cards.push_back({0, static_cast<double>(here), row.pace});
      servers -= here;
    }
  }
  if (servers > 0) cards.push_back({0, 1, {}});
  return cards;
}

}  // namespace

Topology topology_of(const Cluster& cluster, int workers) {
  Topology place;
  place.workers = workers;
  int left = workers;
  for (const Host& host : cluster.hosts) {
    const int slots = std::max(1, host.slots);
    if (left == 0) {
      append(place.spare, 1, slots, host.pace);
    } else {
      left = fill(place, left, 1, slots, host.pace);
    }
  }
  const bool alone = cluster.hosts.size() == 1 && !cluster.links.contains(LinkClass::kInterHost);
  if (left > 0 && alone) {
    place.rows = {{1, workers, cluster.hosts.front().pace}};
  } else if (left > 0) {
    fill(place, left, left, cluster.hosts.empty() ? 1 : std::max(1, cluster.hosts.front().slots), {});
  }
  sum_up(place);
  return place;
}

bool inside_one_host(const Topology& place, const Road& road) {
  const auto* servers = std::get_if<ParameterServer>(&road);
  const bool elsewhere =
      servers != nullptr && servers->placement == Placement::kDedicated && !place.spare.empty();
  return place.hosts == 1 && !elsewhere;
}

std::vector<Card> cards_of(const Topology& place, const ParameterServer& road) {
  const bool inside = inside_one_host(place, road);
  return road.placement == Placement::kDedicated ? dedicated_cards(place, road.servers, inside)
                                                 : colocated_cards(place, road.servers, inside);
}

JobPace pace_of(const Cluster& cluster, int workers) {
  return {topology_of(cluster, workers).slowest.compute, cluster.contention.value};
}

double expected_maximum(int n) {
  if (n <= 1) return 0;
  // Quantile of the standard normal at Blom's plotting position, by Newton on the distribution function.
  const double p = (n - 0.375) / (n + 0.25);
  double x = std::sqrt(2 * std::log(static_cast<double>(n)));
  for (int i = 0; i < 50; ++i) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    const double step = (0.5 * std::erfc(-x / std::sqrt(2.0)) - p) / density;
    const double next = x - std::clamp(step, -0.5, 0.5);
    if (next == x) break;  // as it would stay
    x = next;
  }
  return x;
}

}  // namespace commtune
