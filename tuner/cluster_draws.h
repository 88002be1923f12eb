#pragma once
// Clusters as the doubt in the fits leaves them open: MODEL.md section 7.

#include <cstdint>
#include <vector>

#include "perfmodel/cluster.h"

namespace commtune::tuner {

/// Clusters that the probes' samples would support as well: every fitted curve of these roads and of the
/// links drawn from its covariance, every scalar from its interval, nothing else changed.
class ClusterDraws {
 public:
  /// roads  whose operations matter; the fits of other roads are left out
  ClusterDraws(const Cluster& cluster, const std::vector<Road>& roads, int count, std::uint64_t seed);

  /// Whether any fit or scalar says that it is in doubt. If not, every draw is the cluster itself.
  bool in_doubt() const { return in_doubt_; }
  /// Valid until the next call.
  const Cluster& draw(int index);

 private:
  struct Drawn {
    Curve* target;
    std::vector<Curve> curves;
  };
  void add(Fit& fit, std::uint64_t seed);

  Cluster cluster_;
  std::vector<Drawn> drawn_;
  std::vector<std::vector<double>> scalars_;  ///< gamma, copy, kappa, jitter, ...: one value per draw
  bool in_doubt_ = false;
  int count_ = 0;
};

}  // namespace commtune::tuner
