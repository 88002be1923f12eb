#pragma once
// What a probe is asked for.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/device_kind.h"
#include "perfmodel/plan.h"
#include "probes/sample.h"
#include "probes/step_kind.h"

namespace commtune::probes {

/// What to measure and for how long. Equal on all ranks, except `already`, which only rank 0 reads.
struct ProbeOptions {
  std::optional<Seconds> budget;  ///< wall time of probe() on rank 0; default: default_budget()
  Bytes traffic;                  ///< most bytes that any one rank may send in all; 0: no limit

  Bytes first{4};        ///< -b: smallest message
  Bytes last{64 << 20};  ///< -e, --max-bytes: largest message that a plan may send; reached if time allows
  double factor = 4;     ///< -f: ratio of neighbouring sizes before refinement; > 1

  int warmup = 1;           ///< -w: untimed repetitions at a size, first batch only
  int iterations = 3;       ///< -n: timed repetitions at least
  int max_iterations = 60;  ///< at most, at one size
  double width = 0.02;      ///< half width of the median's 95 % interval, relative, at which a size is done

  std::vector<Collective> algorithms;    ///< empty: all that the executor offers here
  std::vector<ParameterServer> servers;  ///< empty: 1, 2 and N colocated servers, even, and N hashed
  std::vector<int> groups;               ///< sizes of sub-groups beside all ranks; empty: chosen by N
  int most_pairs_hosts = 64;  ///< above this many hosts, pairs are sampled (chosen by seed) and it is said

  Bytes chunk;                            ///< longest transfer of a pipelined road; 0: as the transport likes
  DeviceKind device = DeviceKind::kHost;  ///< whose memory messages lie in

  StepKind steps = StepKind::kTimeline;  ///< what computes while interference and jitter are measured
  /// In place of `steps` GPUs compute, on this share of their multiprocessors: over 0, at most 1.
  std::optional<double> sm_share;

  std::uint64_t seed = 1;
  bool exclusive = true;  ///< refuse when another probe runs on one of the hosts
  Seconds timeout{10.0};  ///< a rank that is silent for so long (and longer than expected) is lost
  std::map<std::string, std::string> settings;  ///< Open MPI's settings and such: part of the fingerprint
  std::string cluster_name;
  std::vector<std::string> models;   ///< that the advisor plans for, to be stored beside the samples
  std::vector<ProbeSample> already;  ///< earlier samples: measured sizes are not measured again

  void check() const;  ///< throws Error{kBadInput} naming field, value and rule
};

/// Wall time of a probe when nothing else is asked for: grows with the hosts, at most 60 s. Up to 4 ranks of
/// fewer hosts count as hosts.
Seconds default_budget(int hosts, int ranks);

}  // namespace commtune::probes
