#pragma once
// Measures a cluster with the executor's own transports and roads, so that what is measured is what will run.
//
// Rank 0 coordinates: it decides what is measured next and how often, tells all ranks, and collects the
// times. The other ranks perform what they are told. So all agree on every repetition, whatever happens in
// between.

#include <string>
#include <vector>

#include "executor/transport/transport.h"
#include "perfmodel/cluster.h"
#include "probes/analysis/links.h"
#include "probes/options.h"
#include "probes/sample.h"
#include "probes/sampling/advisor.h"
#include "probes/sampling/event_sink.h"

namespace commtune::probes {

/// Why a probe ended.
enum class ProbeEnd {
  kComplete,  ///< every size is as narrow as asked for
  kBudget,    ///< time or traffic is spent; `would_measure` says what is missing
  kStopped,   ///< the sink asked for it
  kSettled,   ///< what the advisor would choose is certain
};

/// What a probe's time went into.
struct BudgetSplit {
  Seconds survey{};       ///< all pairs of hosts, for the matrix
  Seconds links{};        ///< the pairs that stand for all, at many sizes
  Seconds first_sizes{};  ///< of roads: what a fit may rest on (enough_sizes.h)
  Seconds refinement{};   ///< of roads: more sizes and repetitions
  Seconds planning{};     ///< interim looks: fits, and the advisor
  Seconds rest{};         ///< clocks, compute, urgent messages, memory, fits
};

struct ProbeResult {
  Cluster cluster;                   ///< fit_cluster() over all samples
  LinkReport links;                  ///< matrix, groups, verdicts
  std::vector<ProbeSample> samples;  ///< `already` and new ones
  ProbeEnd end = ProbeEnd::kComplete;
  std::vector<std::string> would_measure;  ///< with more budget, most valuable first
  std::vector<std::string> notes;          ///< choices made: pairs sampled, sizes not reached
  Seconds elapsed{};
  BudgetSplit split;  ///< of `elapsed`
  Bytes traffic;      ///< most bytes that any rank sent
};

/// Collective: all ranks of the transport call it with equal options. The result is on rank 0; the others get
/// an empty one, once nothing is left to measure: rank 0 fits without them. The sink is used on rank 0 only,
/// and so is the advisor, which says on the way which roads' costs are worth the time that is left
/// (interim_looks.h); nullptr: all count as they do on every cluster.
///
/// Throws on all ranks that can still be reached: Error{kConflict} if another probe runs on one of the hosts,
/// Error{kPeerLost} or Error{kTimeout} naming rank, host and what was being measured.
ProbeResult probe(Transport& transport, const ProbeOptions& options, EventSink& sink,
                  Advisor* advisor = nullptr);

}  // namespace commtune::probes
