#pragma once
// What would happen if: more workers, other networks, more servers. Data for `tune scale`, flip points and
// the dashboard's maps; each point is a whole answer of tune() on a changed cluster.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tuner/tuner.h"

namespace commtune::tuner {

/// Told before each point how much is done, 0 to 1. It may throw to end the work early. May be empty.
using Watch = std::function<void(double fraction)>;

/// The cluster with every latency and every time per byte between ranks multiplied, over each transport. What
/// was measured stays marked as measured; the factors are the reader's assumption. Throws Error{kBadInput}
/// unless both are positive.
Cluster with_network(const Cluster& cluster, double latency_factor, double time_per_byte_factor);

/// The link that a factor on the network is told against.
struct ReferenceLink {
  Seconds latency{};        ///< of an empty message
  SecondsPerByte per_byte;  ///< of a long message; where the fit saw no cost of bytes, of the largest that
                            ///< was measured, latency included
};
/// The link between hosts, or inside one where only that was measured; nothing where no link was.
std::optional<ReferenceLink> reference_link(const Cluster& cluster);

struct ScalePoint {
  int workers = 1;
  Seconds iteration{}, low{}, high{};        ///< low and high: 5th and 95th percentile over the draws
  std::optional<double> samples_per_second;  ///< empty: the batch is not known
  double speedup = 0;                        ///< over one worker
  double efficiency = 0;                     ///< speedup / workers
  Basis basis = Basis::kMeasured;
  bool extrapolated = false;  ///< some message is outside the measured range
  Road road;                  ///< on which the method is fastest there
};

/// Speed-up of one method over the number of workers.
struct ScaleCurve {
  std::string method, title;
  std::vector<ScalePoint> points;
};

/// One curve per entry of the ranking, in the ranking's order at the largest number of workers.
///
/// workers  positive; beyond the cluster's ranks its hosts are taken to go on like the first
std::vector<ScaleCurve> scale(const Profile& profile, const Cluster& cluster, const std::vector<int>& workers,
                              const TuneOptions& options = {}, const Watch& watch = {});

struct ServerPoint {
  int servers = 1;    ///< 0: none, the best all-reduce plan
  std::string title;  ///< of the fastest plan there
  Road road;
  Seconds iteration{};                       ///< of the fastest plan there
  std::optional<double> samples_per_second;  ///< empty: the batch is not known
  double marginal_gain = 0;  ///< time saved over the point before, as a part of it; negative: time lost
};
/// The best plan over each number of servers of a placement; 0 asks for all-reduce. Throws Error{kBadInput}
/// for a negative number, or for more colocated servers than workers.
std::vector<ServerPoint> server_sweep(const Profile& profile, const Cluster& cluster,
                                      const std::vector<int>& servers, Placement placement,
                                      const TuneOptions& options = {}, const Watch& watch = {});

/// One cell of a map of winners.
struct PhaseCell {
  int workers = 1;
  double latency_factor = 1, time_per_byte_factor = 1;
  std::string published;  ///< title of the fastest method of the literature
  std::string road;       ///< of the fastest plan of all
  Seconds iteration{};    ///< of the fastest plan of all
  double joint_win = 1;   ///< time of the fastest published method over it
  Binding binding = Binding::kCompute;
};
/// Every combination of the axes, workers outermost.
std::vector<PhaseCell> phase_map(const Profile& profile, const Cluster& cluster,
                                 const std::vector<int>& workers, const std::vector<double>& latency_factors,
                                 const std::vector<double>& time_per_byte_factors,
                                 const TuneOptions& options = {}, const Watch& watch = {});

/// What would make another method of the literature, or another road, the best.
struct Flip {
  std::string change;  ///< "network", "device", "workers", "servers"
  double factor = 1;   ///< slower network, faster device, or times as many workers or dedicated servers;
                       ///< where there are none yet, half of it is their number
  std::string before, after;  ///< "MG-WFBP on all-to-all ring"
  std::string sentence;       ///< "WFBP-PS on 8 colocated servers wins once the network is 2.3 times slower."
};
/// The nearest flip along each change, up to a factor of 64, to within 5 %: where another wins by more than
/// what cannot be told apart (kIndifferent). Changes without one are left out. How many points that takes is
/// not known before: `watch` is told before each, but only of changes that are done.
std::vector<Flip> flip_points(const Profile& profile, const Cluster& cluster, const TuneOptions& options = {},
                              const Watch& watch = {});

}  // namespace commtune::tuner
