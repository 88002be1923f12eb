#pragma once
// What would happen if: curves over workers and servers, maps over networks. Nothing is stored; every point
// is a whole answer of tuner::tune on a changed cluster.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/actions/context.h"
#include "api/question/answer.h"
#include "tuner/whatif.h"

namespace commtune::api {

/// On what the answers rest.
struct WhatIf {
  std::string model, cluster;
  int batch = 1;
  int workers = 1;           ///< where they are not an axis
  std::optional<RowId> fit;  ///< absent: the cluster was given
  FitMarks marks;
};

/// Everything that a what-if is computed from.
struct WhatIfCase {
  Profile profile;
  Cluster cluster;  ///< as it was fitted, or with assumptions in its place
  tuner::TuneOptions options;
  std::string name;          ///< of the cluster
  std::optional<RowId> fit;  ///< absent: a given cluster
  tuner::Watch watch;        ///< told how far it is; may throw to end the work
  FitMarks marks = {};       ///< of the fit
};

struct ScaleRequest {
  Question job;              ///< its workers are not looked at
  std::vector<int> workers;  ///< positive, growing
};
struct ScaleOutcome {
  WhatIf about;
  Seconds compute{};  ///< one worker's iteration
  std::vector<tuner::ScaleCurve> curves;
};
/// Speed-up and efficiency of every method over the number of workers (positive, growing). The first of each
/// pair throws Error{kBadInput} for an axis that does not fit; the second also what look_up throws, and
/// Error{kInterrupted} after a cancellation.
ScaleOutcome scale(const WhatIfCase& given, const std::vector<int>& workers);
ScaleOutcome scale_job(Context& context, const ScaleRequest& request);

struct ServersRequest {
  Question job;
  std::vector<int> servers;  ///< 0: all-reduce
  Placement placement = Placement::kColocated;
};
struct ServersOutcome {
  WhatIf about;
  Placement placement = Placement::kColocated;
  std::vector<tuner::ServerPoint> points;
};
/// Iteration time of the best plan over the number of servers.
ServersOutcome servers(const WhatIfCase& given, const std::vector<int>& servers, Placement placement);
ServersOutcome servers_job(Context& context, const ServersRequest& request);

struct MapRequest {
  Question job;
  std::vector<int> workers;              ///< empty: the job's
  std::vector<Seconds> latencies;        ///< of the link between hosts; empty: as measured
  std::vector<SecondsPerByte> per_byte;  ///< of the same link; empty: as measured
};
/// The axes of a map: workers, and factors on what was measured.
struct MapAxes {
  std::vector<int> workers;
  std::vector<double> latency_factors{1}, per_byte_factors{1};
};
struct MapOutcome {
  WhatIf about;
  /// Of the link that was measured (between hosts where there are several), 0 where none was; the axes below
  /// are this times the cells' factors.
  Seconds latency{};
  SecondsPerByte per_byte;
  std::vector<int> workers;
  std::vector<double> latency_factors, per_byte_factors;
  std::vector<tuner::PhaseCell> cells;  ///< workers outermost, then latencies, then times per byte
};
/// Which plan wins where; at most 4096 cells. The second throws Error{kNotFound} when no link was measured.
MapOutcome map(const WhatIfCase& given, const MapAxes& axes);
MapOutcome map_job(Context& context, const MapRequest& request);

/// 1/16, 1/8, ... 16 times what was measured: the axis of a map whose bandwidths nobody named.
std::vector<SecondsPerByte> usual_rates(const Store& store, const ClusterChoice& choice);

nlohmann::json to_json(const ScaleOutcome& outcome);
nlohmann::json to_json(const ServersOutcome& outcome);
nlohmann::json to_json(const MapOutcome& outcome);

}  // namespace commtune::api
