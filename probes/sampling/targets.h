#pragma once
// Which quantities are worth knowing about a cluster of this shape, and how much. Pure.

#include <optional>
#include <string>
#include <vector>

#include "perfmodel/cost/topology.h"
#include "probes/options.h"
#include "probes/protocol/tournament.h"
#include "probes/sampling/sampling_plan.h"

namespace commtune::probes {

/// A first idea of a link, from a few messages.
struct LinkGuess {
  Seconds latency{100e-6};  ///< one way
  SecondsPerByte beta{1e-9};
};

/// What targets depend on.
struct ClusterShape {
  std::vector<std::string> rank_hosts;
  std::optional<Pair> between;  ///< ranks on two hosts that stand for their class
  std::optional<Pair> within;   ///< two ranks of one host
  LinkGuess between_guess, within_guess;
  Cluster surveyed;  ///< its hosts, as far as the survey tells their paces; none: all are as fast
};

/// Roads and algorithms that both the options and the executor know. Unless the options name algorithms,
/// stages are timed apart for the ring alone, the hierarchical algorithm is left out where hosts have one
/// rank each, and one-shot for two ranks, to whom it is recursive doubling. Unless they name servers, there
/// are as many as ranks, one, and those on `spared` workers (of clusters with slow hosts) or two; where
/// several hosts have several ranks, with a local sum, and as many as ranks also without.
struct Offer {
  std::vector<Collective> algorithms;
  std::vector<Collective> staged;  ///< those of them whose stages run apart
  std::vector<ParameterServer> servers;
};
Offer offer(const ProbeOptions& options, const std::vector<std::string>& rank_hosts, WorkerRow spared = {});

/// Sizes of sub-groups that are measured beside all ranks.
std::vector<int> sub_groups(const ProbeOptions& options, int ranks);

/// Links, then each road's operations, alone and streamed, at all ranks and in sub-groups.
std::vector<Target> choose_targets(const ProbeOptions& options, const ClusterShape& shape,
                                   const Offer& offer);

/// Those of one road more, as a whole: its operation on so many workers, alone and streamed.
std::vector<Target> road_targets(const ProbeOptions& options, const ClusterShape& shape, const Road& road,
                                 int workers);

/// Bytes that the busiest rank sends, per byte of the message.
double bytes_sent(const Road& road, Operation operation, int workers);

}  // namespace commtune::probes
