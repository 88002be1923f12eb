#pragma once
// Who plans on what a probe has measured so far, and says which roads' costs would change the choice. Probes
// measure; how plans are made is not their business.

#include <algorithm>
#include <string>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/cluster.h"
#include "perfmodel/plan.h"

namespace commtune::probes {

/// What plans make of one road's costs.
struct RoadNeed {
  Road road;
  int workers = 0;
  double value = 0;         ///< >= 0, of knowing them exactly; only ratios matter
  Bytes smallest, largest;  ///< of the messages that plans would send over it
};

struct Advice {
  std::vector<RoadNeed> needs;  ///< a road once at most; of others nothing is needed
  std::string choice;           ///< what would be chosen, in words; equal words, equal choices
  bool certain = false;         ///< nothing that more samples may show is expected to change it
};

/// Nothing where no need has any value.
inline const RoadNeed* most_needed(const Advice& advice) {
  const auto most = std::ranges::max_element(advice.needs, {}, &RoadNeed::value);
  return most == advice.needs.end() || !(most->value > 0) ? nullptr : &*most;
}

/// Called on rank 0 only, from probe()'s own thread.
class Advisor {
 public:
  virtual ~Advisor() = default;
  Advisor() = default;
  Advisor(const Advisor&) = delete;
  Advisor& operator=(const Advisor&) = delete;

  /// known  fitted to all samples so far, without covariances
  /// limit  how long it may take: all ranks wait
  virtual Advice advise(const Cluster& known, Seconds limit) = 0;
};

}  // namespace commtune::probes
