#pragma once
// What a probe tells while it runs, and whom.

#include <string>
#include <vector>

#include "perfmodel/base/units.h"
#include "probes/analysis/fit_cluster.h"
#include "probes/sample.h"

namespace commtune::probes {

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

}  // namespace commtune::probes
