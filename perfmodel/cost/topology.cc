#include "perfmodel/cost/topology.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "perfmodel/base/overloaded.h"

namespace commtune {

namespace {

void append(std::vector<HostRow>& rows, int hosts, int ranks, const HostSlowdown& slowdown) {
  if (!rows.empty() && rows.back().ranks == ranks && rows.back().slowdown == slowdown) {
    rows.back().hosts += hosts;
  } else {
    rows.push_back({hosts, ranks, slowdown});
  }
}

HostSlowdown slower(const HostSlowdown& a, const HostSlowdown& b) {
  return {std::max(a.latency, b.latency), std::max(a.time_per_byte, b.time_per_byte),
          std::max(a.compute, b.compute)};
}

/// Takes workers for hosts of so many slots, as many hosts as are offered.
int fill(Topology& place, int left, int hosts, int slots, const HostSlowdown& slowdown) {
  const int whole = std::min(hosts, left / slots), rest = whole < hosts ? left % slots : 0;
  if (whole > 0) append(place.rows, whole, slots, slowdown);
  if (rest > 0) append(place.rows, 1, rest, slowdown);
  return left - whole * slots - rest;
}

/// The totals of the rows.
void sum_up(Topology& place) {
  place.hosts = 0;
  place.per_host = 1;
  if (!place.rows.empty()) {
    place.slowest = place.rows.front().slowdown;
    place.fewest = place.rows.front().ranks;
  }
  for (const HostRow& row : place.rows) {
    place.hosts += row.hosts;
    place.per_host = std::max(place.per_host, row.ranks);
    place.fewest = std::min(place.fewest, row.ranks);
    place.slowest = slower(place.slowest, row.slowdown);
  }
}

/// How many of workers [from, until) have a server beside them.
int serving(const Topology& place, WorkerRow servers, int from, int until) {
  const auto overlap = [&](int first, int end) {
    return std::max(0, std::min(until, end) - std::max(from, first));
  };
  const int end = servers.first + servers.count;
  return overlap(servers.first, std::min(end, place.workers)) + overlap(0, end - place.workers);
}

/// Servers in workers' processes. A row of alike hosts is one card for each number of servers on a host of
/// it.
std::vector<Card> colocated_cards(const Topology& place, WorkerRow servers, bool inside) {
  std::vector<Card> cards;
  int begin = 0;
  for (const HostRow& row : place.rows) {
    const int ranks = inside ? 1 : row.ranks, hosts = inside ? row.ranks : row.hosts;
    const int end = begin + ranks * hosts;
    std::set<int> changes{0, hosts};  // hosts at which the number may change
    for (const int edge : {servers.first, (servers.first + servers.count) % place.workers}) {
      if (edge < begin || edge >= end) continue;
      changes.insert((edge - begin) / ranks);
      changes.insert((edge - begin) / ranks + 1);
    }
    for (auto host = changes.begin(); *host < hosts; ++host) {
      const int worker = begin + *host * ranks;
      const int here = serving(place, servers, worker, worker + ranks);
      cards.push_back({1.0 * ranks, 1.0 * here, row.slowdown});
    }
    begin = end;
  }
  return cards;
}

std::vector<Card> dedicated_cards(const Topology& place, int servers, bool inside) {
  std::vector<Card> cards = colocated_cards(place, {}, inside);
  for (const HostRow& row : place.spare) {
    for (int host = 0; host < row.hosts && servers > 0; ++host) {
      const int here = std::min(servers, row.ranks);
      cards.push_back({0, static_cast<double>(here), row.slowdown});
      servers -= here;
    }
  }
  if (servers > 0) cards.push_back({0, 1, {}});
  return cards;
}

/// Quantile of the standard normal at (n - by) / (n + 1 - 2 by), by Newton on the distribution function; 0
/// for n = 1.
double normal_at_plotting_position(int n, double by) {
  if (n <= 1) return 0;
  const double p = (n - by) / (n + 1 - 2 * by);
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

/// As many ranks as it is asked for.
bool is_one_host(const Cluster& cluster) {
  return cluster.hosts.size() == 1 && !cluster.links.contains(LinkClass::kInterHost);
}

bool has_dedicated_servers(const Road& road) {
  return match(
      road, [](const AllReduce&) { return false; },
      [](const ParameterServer& servers) { return servers.placement == Placement::kDedicated; });
}

}  // namespace

Topology topology_of(const Cluster& cluster, int workers) {
  Topology place;
  place.workers = workers;
  int left = workers;
  for (const Host& host : cluster.hosts) {
    const int slots = std::max(1, host.slots);
    if (left == 0) {
      append(place.spare, 1, slots, host.slowdown);
    } else {
      left = fill(place, left, 1, slots, host.slowdown);
    }
  }
  if (left > 0 && is_one_host(cluster)) {
    place.rows = {{1, workers, cluster.hosts.front().slowdown}};
  } else if (left > 0) {
    fill(place, left, left, cluster.hosts.empty() ? 1 : std::max(1, cluster.hosts.front().slots), {});
  }
  sum_up(place);
  return place;
}

bool may_sum_locally(const Topology& place) { return place.hosts > 1 && place.per_host > 1; }

bool inside_one_host(const Topology& place, const Road& road) {
  return place.hosts == 1 && (place.spare.empty() || !has_dedicated_servers(road));
}

bool inside_one_host(const Cluster& cluster, int workers, const Road& road) {
  if (cluster.hosts.empty()) return workers <= 1;
  const bool others = cluster.hosts.size() > 1;
  const bool fits = workers <= std::max(1, cluster.hosts.front().slots) || is_one_host(cluster);
  return fits && !(others && has_dedicated_servers(road));
}

std::vector<Card> cards_of(const Topology& place, const ParameterServer& road) {
  const bool inside = inside_one_host(place, road);
  return road.placement == Placement::kDedicated ? dedicated_cards(place, road.servers, inside)
                                                 : colocated_cards(place, {road.first, road.servers}, inside);
}

WorkerRow spared_workers(const Topology& place) {
  std::vector<bool> fast;
  for (const HostRow& row : place.rows) {
    fast.insert(fast.end(), static_cast<std::size_t>(row.hosts) * static_cast<std::size_t>(row.ranks),
                row.slowdown.time_per_byte <= 1);
  }
  const auto workers = static_cast<int>(fast.size());
  const auto slow = static_cast<int>(std::count(fast.begin(), fast.end(), false));
  WorkerRow longest;
  if (slow == 0 || slow == workers) return longest;
  // Around once from every slow worker to the next.
  for (int worker = 0; worker < workers; ++worker) {
    if (fast[static_cast<std::size_t>(worker)]) continue;
    int count = 0;
    while (fast[static_cast<std::size_t>((worker + 1 + count) % workers)]) ++count;
    if (count > longest.count) longest = {(worker + 1) % workers, count};
  }
  return longest;
}

RingSkew ring_skew(const Topology& place, const RingLink& inside, const RingLink& between) {
  if (place.workers < 3 || place.hosts < 2 || !(between.per_byte.value > 0)) return {};
  std::vector<HostSlowdown> hosts;
  std::vector<RingLink> links;
  for (const HostRow& row : place.rows) {
    const auto of_row = static_cast<std::size_t>(row.hosts);
    hosts.insert(hosts.end(), of_row, row.slowdown);
    links.insert(links.end(), of_row * static_cast<std::size_t>(row.ranks - 1),
                 inside.per_byte.value > 0 ? inside : between);
  }
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const HostSlowdown of_both = slower(hosts[host], hosts[(host + 1) % hosts.size()]);
    links.push_back(
        {of_both.latency * between.latency, SecondsPerByte{of_both.time_per_byte * between.per_byte.value}});
  }
  double slowest = 0, slow = 0, faster = 0;
  RingSkew skew;
  for (const RingLink& link : links) slowest = std::max(slowest, link.per_byte.value);
  for (const RingLink& link : links) {
    slow += link.per_byte.value == slowest ? 1 : 0;
    faster += 1 - link.per_byte.value / slowest;
    skew.latency += link.latency;
  }
  skew.share = faster / slow / (2.0 * (place.workers - 1));
  skew.latency = skew.latency / slow;
  return skew;
}

JobSlowdown slowdown_of(const Cluster& cluster, int workers) {
  const Topology place = topology_of(cluster, workers);
  int slowest = 0;
  for (const HostRow& row : place.rows) {
    if (row.slowdown.compute >= place.slowest.compute) slowest += row.hosts * row.ranks;
  }
  return {place.slowest.compute, cluster.contention.value,
          Seconds{cluster.jitter_seconds.value * least_expected_maximum(slowest)}};
}

double expected_maximum(int n) { return normal_at_plotting_position(n, 0.375); }

double least_expected_maximum(int n) { return normal_at_plotting_position(n, 0.33); }

}  // namespace commtune
