#include "tuner/transport_job.h"

#include <algorithm>
#include <utility>

#include "perfmodel/base/error.h"
#include "tuner/doubtful.h"
#include "tuner/trials.h"

namespace commtune::tuner {

namespace {

/// The job with these of its roads alone; nothing where none of them is among its own.
std::optional<Planning> with_roads(const Planning& job, const std::vector<TransportRoad>& roads,
                                   const std::string& transport) {
  if (roads.empty()) return std::nullopt;
  Planning narrowed = job;
  for (std::vector<RoadOption>* options : {&narrowed.roads, &narrowed.whole}) {
    std::erase_if(*options, [&](const RoadOption& option) {
      return std::ranges::find(roads, TransportRoad{option.road, transport}) == roads.end();
    });
  }
  const bool none = narrowed.roads.empty() && narrowed.whole.empty();
  return none ? std::nullopt : std::optional(std::move(narrowed));
}

/// Of the roads that plans are searched on.
std::vector<RoadBound> bounds_of(const Planning& job, const std::string& transport) {
  std::vector<RoadBound> bounds;
  bounds.reserve(job.roads.size());
  for (const RoadOption& option : job.roads)
    bounds.push_back({option.road, option.bound, option.cost.explanation, {}, transport});
  return bounds;
}

TransportJob job_over(const Cluster& cluster, std::string transport, const Profile& profile, int workers,
                      const TuneOptions& options, const OutOfTime& out_of_time) {
  Planning job(profile, cluster, workers,
               options.roads.empty()
                   ? worth_pricing(roads_for(cluster, workers, options.limits), cluster, workers)
                   : options.roads,
               out_of_time);
  job.thorough = options.thorough;
  job.barrier = options.barrier;
  if (options.roads.empty()) job.price_whole_messages(cluster);  // no others where roads are named
  require_usable_fit(job, cluster);
  job.delay([&](const Road& road) { return delay_on({road, transport}, options.trials.runs); });
  std::optional<Planning> narrowed = with_roads(job, options.trials.roads, transport);
  std::vector<RoadBound> bounds = bounds_of(job, transport);
  return {&cluster, std::move(transport), std::move(job), std::move(narrowed), std::move(bounds)};
}

}  // namespace

std::vector<TransportJob> jobs_of(const Profile& profile, const Cluster& cluster, int workers,
                                  const TuneOptions& options, const OutOfTime& out_of_time) {
  std::vector<TransportJob> jobs;
  std::optional<Error> why;
  const std::vector<const Cluster*> views = over_each_transport(cluster);
  jobs.reserve(views.size());
  for (const Cluster* view : views) {
    try {
      jobs.push_back(job_over(*view, views.size() > 1 ? view->transport : std::string(), profile, workers,
                              options, out_of_time));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kPoorFit &&
          error.code() != ErrorCode::kTimeout)
        throw;
      if (!why) why = error;
    }
  }
  if (jobs.empty()) throw Error(*why);
  return jobs;
}

}  // namespace commtune::tuner
