#pragma once
// What the pairs of ranks say about a cluster: the matrix of links, groups of hosts, and links that depart
// from their class. Pure functions over samples.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "perfmodel/cluster.h"
#include "probes/sample.h"

namespace commtune::probes {

/// A link belongs to the fast class up to this ratio of times per byte over it: wide enough for noise and for
/// protocol overhead, narrow enough that link speeds sold next to each other (1/2.5/5/10/25/40/100 Gb/s) are
/// told apart.
inline constexpr double kSameClass = 1.25;

/// One direction between two hosts, by their indices in LinkReport::hosts.
struct HostLink {
  int from = 0, to = 0;
  Seconds latency{};    ///< one way, smallest message, alone; 0 when not measured
  SecondsPerByte beta;  ///< per byte, large messages streaming; 0 when not measured
};

enum class VerdictKind {
  kSlowHost,     ///< a host is slow in both directions
  kSlowSend,     ///< a host is slow only when it sends
  kSlowReceive,  ///< a host is slow only when it receives
  kSlowPair,     ///< one direction of one pair is slow while its two hosts are not
  kLateHost,     ///< a host's messages take longer to arrive, both ways (latency)
};

struct Verdict {
  VerdictKind kind = VerdictKind::kSlowHost;
  int host = 0;      ///< index into LinkReport::hosts
  int other = -1;    ///< receiver of a slow pair
  double ratio = 1;  ///< its time over its class's median: 5 means five times as slow
  /// "host h3 sends and receives 5.0 times as slowly as its class (0.025 GB/s, not 0.125)"
  std::string text;
};

struct LinkReport {
  std::vector<std::string> hosts;        ///< distinct, in rank order
  std::vector<HostLink> links;           ///< measured directions between different hosts
  std::vector<std::vector<int>> groups;  ///< hosts that are closer to each other than to the rest; one group
                                         ///< when the cluster is uniform
  std::vector<Verdict> verdicts;         ///< empty on a uniform cluster
};

/// Per rank, the index of its host among the distinct ones in rank order; and those.
std::vector<int> host_of_rank(std::span<const std::string> rank_hosts);
std::vector<std::string> distinct_hosts(std::span<const std::string> rank_hosts);

/// Groups: hosts are joined by links of the fast class (within a quarter of the fastest tenth); what stays
/// joined is a group if it has two members at least. A host with no fast link in a direction is slow in that
/// direction; a pair's direction is slow when its two hosts and its pair of groups do not explain it.
/// rank_hosts  host name of each rank, as in Peers::hosts
LinkReport analyse_links(std::span<const ProbeSample> samples, std::span<const std::string> rank_hosts);

/// 0 to 100 for each host: the bandwidth of its slowest direction over that of the fastest direction of all,
/// halved for each verdict that its messages arrive late. A host without a measured direction has 100.
std::map<std::string, double> host_scores(const LinkReport& report);

nlohmann::json to_json(const LinkReport& report);

}  // namespace commtune::probes
