#pragma once
// Measures a cluster with the executor's own transports and roads, so that what is measured is what will run.
//
// Rank 0 conducts: it decides what is measured next and how often, tells all ranks, and collects the times.
// The other ranks perform what they are told. So all agree on every repetition, whatever happens in between.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/transport/transport.h"
#include "perfmodel/cluster.h"
#include "probes/fit_cluster.h"
#include "probes/links.h"
#include "probes/sample.h"
#include "probes/step_kind.h"

namespace commtune::probes {

/// What to measure and for how long. Equal on all ranks, except `already`, which only rank 0 reads.
struct ProbeOptions {
  std::optional<Seconds> budget;  ///< wall time of probe() on rank 0; default: default_budget(hosts)
  Bytes traffic;                  ///< most bytes that any one rank may send in all; 0: no limit

  Bytes first{4};        ///< -b: smallest message
  Bytes last{64 << 20};  ///< -e, --max-bytes: largest message that a plan may send; reached if time allows
  double factor = 4;     ///< -f: ratio of neighbouring sizes before refinement; > 1

  int warmup = 1;           ///< -w: untimed repetitions at a size, first batch only
  int iterations = 3;       ///< -n: timed repetitions at least
  int max_iterations = 60;  ///< at most, at one size
  double width = 0.02;      ///< half width of the median's 95 % interval, relative, at which a size is done

  std::vector<Collective> algorithms;    ///< empty: all that the executor offers here
  std::vector<ParameterServer> servers;  ///< empty: 1, 2 and N colocated servers, even
  std::vector<int> groups;               ///< sizes of sub-groups beside all ranks; empty: chosen by N
  int most_pairs_hosts = 64;  ///< above this many hosts, pairs are sampled (chosen by seed) and it is said

  StepKind steps = StepKind::kTimeline;  ///< what computes while interference and jitter are measured

  std::uint64_t seed = 1;
  bool exclusive = true;  ///< refuse when another probe runs on one of the hosts
  Seconds timeout{10.0};  ///< a rank that is silent for so long (and longer than expected) is lost
  std::map<std::string, std::string> settings;  ///< Open MPI's settings and such: part of the fingerprint
  std::string cluster_name;
  std::vector<ProbeSample> already;  ///< earlier samples: measured sizes are not measured again

  void check() const;  ///< throws Error{kBadInput} naming field, value and rule
};

/// Wall time of a probe when nothing else is asked for: grows with the hosts, at most 60 s.
Seconds default_budget(int hosts);

/// What is going on, about five times a second on rank 0.
struct ProbeProgress {
  std::string what;     ///< "all-reduce, all-to-all ring, 4 workers, 1.0 MiB"
  double fraction = 0;  ///< of the budget or of the work, whichever ends first
  Seconds left{};
};

/// Called on rank 0 only, from probe()'s own thread.
class EventSink {
 public:
  virtual ~EventSink() = default;
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;

  /// Once, before the first sample: where it is measured. A stored sample needs its cluster to exist.
  virtual void on_facts(const ClusterFacts& /*facts*/) {}
  /// Once, after on_facts: samples measured earlier on a cluster of the same fingerprint, to go on from.
  virtual std::vector<ProbeSample> earlier(const ClusterFacts& /*facts*/) { return {}; }
  virtual void on_progress(const ProbeProgress& progress) = 0;
  /// A finished sample, or a narrower repetition of an earlier one (the later supersedes). Store it at once:
  /// what was handed here survives whatever happens next.
  virtual void on_sample(const ProbeSample& sample) = 0;
  /// True ends the probe after the batch that is running, with what was measured (Ctrl-C).
  virtual bool stop_requested() { return false; }
};

/// Why a probe ended.
enum class ProbeEnd {
  kComplete,  ///< every size is as narrow as asked for
  kBudget,    ///< time or traffic is spent; `would_measure` says what is missing
  kStopped,   ///< the sink asked for it
};

struct ProbeResult {
  Cluster cluster;                   ///< fit_cluster() over all samples
  LinkReport links;                  ///< matrix, groups, verdicts
  std::vector<ProbeSample> samples;  ///< `already` and new ones
  ProbeEnd end = ProbeEnd::kComplete;
  std::vector<std::string> would_measure;  ///< with more budget, most valuable first
  std::vector<std::string> notes;          ///< choices made: pairs sampled, sizes not reached
  Seconds elapsed{};
  Bytes traffic;  ///< most bytes that any rank sent
};

/// Collective: all ranks of the transport call it with equal options. The result is on rank 0; the others get
/// an empty one. The sink is used on rank 0 only.
/// Throws on all ranks that can still be reached: Error{kConflict} if another probe runs on one of the hosts,
/// Error{kPeerLost} or Error{kTimeout} naming rank, host and what was being measured.
ProbeResult probe(Transport& transport, const ProbeOptions& options, EventSink& sink);

}  // namespace commtune::probes
