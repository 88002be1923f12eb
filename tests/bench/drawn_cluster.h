#pragma once
// Made-up clusters whose costs are known exactly, and what a probe would see of them: for the bench of the
// sampling plan. They behave as the emulated ones do: start-up and rate, bends where a protocol changes,
// streams of which the next message is handed over while the last one's bytes leave, noise within a visit,
// and drift between visits. The same for the same seed on every machine.

#include <cstdint>
#include <string>
#include <vector>

#include "perfmodel/base/random.h"
#include "perfmodel/base/units.h"
#include "perfmodel/cluster.h"
#include "probes/sampling/targets.h"

namespace commtune::bench {

/// A cost as a function of size.
struct TrueCost {
  double startup = 0;   ///< seconds of an empty message
  double per_byte = 0;  ///< seconds
  double hides = 1;     ///< 1: start-up and bytes add up; more: the longer one hides the other (a p-norm)
  double bend = 0;      ///< bytes at which a protocol changes
  double jump = 0;      ///< seconds on top from there
  double small_byte_more = 0;  ///< below it bytes take longer by this ratio

  double operator()(Bytes size) const;
};

/// How measured times depart from the true ones.
struct Noise {
  double within = 0;         ///< relative standard deviation within a visit
  double visit = 0;          ///< between visits, of an operation of a millisecond or less
  double state = 0;          ///< between half seconds: a host's state lasts longer than a visit
  double stall_chance = 0;   ///< of a repetition
  double stall_seconds = 0;  ///< mean
};

struct DrawnCluster {
  std::vector<std::string> rank_hosts;
  std::string name;                   ///< "5 ranks on 5 hosts, 340 Mb/s, 210 us"
  probes::LinkGuess between, within;  ///< the true ones
  Noise noise;
  Seconds overhead{};  ///< of a repetition, beside what is timed
  std::vector<probes::Target> targets;
  std::vector<TrueCost> costs;  ///< by target
  probes::ClusterShape shape;   ///< with the true links
  /// Roads over servers that plans may take beside those that are offered to the probe: their targets, in the
  /// order of their costs.
  std::vector<probes::Target> other_targets;
  std::vector<TrueCost> other_costs;
  int hosts = 0;
};

/// 2 to 8 ranks, one in four clusters with two ranks a host; 100 Mb/s to 10 Gb/s, 20 us to 1 ms.
DrawnCluster drawn_cluster(Random& random);

/// The roads of all its targets at all ranks, each once: of no others are the costs known.
std::vector<Road> roads_of(const DrawnCluster& cluster);

/// As a probe would find it that knew everything.
Cluster true_cluster(const DrawnCluster& cluster);

/// Times of repetitions, as a probe sees them.
class NoisyClock {
 public:
  NoisyClock(const Noise& noise, std::uint64_t seed);
  /// Repetitions of one visit of what takes `seconds`, that begins `at` after the probe's begin.
  /// messages  of one repetition, which average
  std::vector<double> visit(double seconds, int messages, int repetitions, Seconds at);

 private:
  Noise noise_;
  std::uint64_t seed_;
  Random random_;
};

}  // namespace commtune::bench
