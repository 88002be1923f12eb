#include "tuner/doubtful.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "perfmodel/base/error.h"
#include "perfmodel/cost/doubtful_fits.h"
#include "perfmodel/cost/stage_cost.h"

namespace commtune::tuner {

std::vector<DoubtfulFit> doubtful_fits_behind(const std::vector<Entry>& ranking, const Cluster& cluster,
                                              int workers) {
  std::vector<FitSource> sources;
  std::map<const Fit*, std::vector<std::string>> methods;
  std::map<const Fit*, std::string> transports;
  for (const Entry& entry : ranking) {
    const Cluster& over = over_transport(cluster, entry.plan.transport);
    for (const FitSource& source : fits_behind(entry.plan.road, over, workers)) {
      if (!is_doubtful(*source.fit)) continue;
      if (!entry.plan.transport.empty()) transports[source.fit] = " over " + entry.plan.transport;
      std::vector<std::string>& resting = methods[source.fit];
      if (resting.empty()) sources.push_back(source);
      resting.push_back(entry.method);
    }
  }
  std::vector<DoubtfulFit> doubtful;
  for (const FitSource& source : doubtful_among(std::move(sources)))
    doubtful.push_back(
        {describe(source) + transports[source.fit], source.fit->quality, std::move(methods[source.fit])});
  return doubtful;
}

void require_usable_fit(const Planning& job, const Cluster& cluster) {
  std::vector<FitSource> sources;
  for (const RoadOption& option : job.roads) {
    for (const FitSource& source : fits_behind(option.road, cluster, job.workers)) {
      if (is_usable(*source.fit)) return;
      sources.push_back(source);
    }
  }
  if (sources.empty()) return;
  const FitSource worst = doubtful_among(std::move(sources)).front();
  throw Error(
      ErrorCode::kPoorFit,
      fmt::format("cluster \"{}\": every fit that a plan could be priced by misses its samples, and none "
                  "is nearer to them than one cost for all sizes; the worst is {} ({}): probe it again "
                  "with a larger --budget",
                  cluster.name, describe(worst), to_string(worst.fit->quality)));
}

}  // namespace commtune::tuner
