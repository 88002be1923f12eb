#pragma once
// The question that every method of planning is asked: one job, with the roads that it may take.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/cost/road_cost.h"
#include "perfmodel/cost/road_factor.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "perfmodel/simulate/simulate.h"
#include "tuner/server_keys.h"

namespace commtune::tuner {

/// Times and expected regrets that differ by less than this part of them cannot be told apart by what anybody
/// would notice.
inline constexpr double kIndifferent = 0.002;

/// By how much, as a standard deviation, another run of a plan takes more or less, beside what the iterations
/// of one run leave open: the choices of tests/bench/accuracy --random, measured again after all others,
/// differed by 0.3 % in the median and 3.4 % at the 95th percentile.
inline constexpr double kBetweenRuns = 0.01;

/// What plans take beside what their roads' costs say (Cluster::plan_deviation) is half a matter of the road,
/// and half of how the plan uses it: nobody knows the parts, and with halves neither can decide alone. Part
/// of the variance.
inline constexpr double kOwnPart = 0.5;

/// Asked between two simulations whether to end with what there is by then. Empty: never. What it throws ends
/// the work without an answer.
using OutOfTime = std::function<bool()>;
inline bool is_out(const OutOfTime& out_of_time) { return out_of_time && out_of_time(); }

inline constexpr const char* kNothingInTime = "the time limit passed before a single plan was priced";

enum class Architecture { kAllReduce, kParameterServer };

Architecture architecture_of(const Road& road);
std::string to_string(Architecture architecture);  ///< "all-to-all", "parameter servers"

/// What an iteration takes on a road beside what the road's costs say, going by other plans that were run.
struct RoadDelay {
  Seconds mean{}, deviation{};
};
/// The cost with what iterations on the road are late by, so many standard deviations above the mean.
RoadCost with_delay(RoadCost cost, const RoadDelay& delay, double deviations = 0);

/// A road that may be taken, with what it costs at this number of workers.
struct RoadOption {
  Road road;
  RoadCost cost;
  Seconds bound{};      ///< lower_bound on this road
  Seconds simulated{};  ///< LowerBounds::simulated, which is no less; 0 where it was not computed
  /// What the method's plan on another road takes: a method that tries many plans need not find the best of
  /// this one where none is faster.
  Seconds to_beat = kNoLimit;
  RoadDelay delay = {};  ///< its mean is part of `cost` and `simulated`
  /// What no simulated plan on this road goes below: where a search may stop.
  Seconds floor() const { return std::max(bound, simulated); }
};

/// The same road on a network on which messages alone, and streams of them, take so many times as long.
RoadCost scaled(RoadCost cost, const CostFactor& alone, const CostFactor& streamed);
/// The same with one factor on all.
RoadCost slower(RoadCost cost, double factor);

/// One job. Made once per question; every method and search reads it, none writes it.
struct Planning {
  /// Throws Error{kBadInput} when no road is given or one does not fit the workers; Error{kNotFound} when the
  /// cluster cannot price any of them, Error{kTimeout} when it is out of time before it has priced one. A
  /// road that cannot be priced, or not in time, is left out.
  Planning(const Profile& profile, const Cluster& cluster, int workers, const std::vector<Road>& roads,
           const OutOfTime& out_of_time = {});
  /// With roads whose costs come from elsewhere.
  Planning(const Profile& profile, int workers, std::vector<RoadOption> options,
           const JobSlowdown& slowdown = {});

  Profile profile;
  std::string profile_digest, layout;
  Workload work;
  TensorKeys keys;  ///< for servers that take messages whole
  Seconds alone{};  ///< an iteration of one worker on a host that is as the profile says
  int workers = 1;
  bool thorough = false;           ///< TuneOptions::thorough
  std::optional<Barrier> barrier;  ///< TuneOptions::barrier
  std::vector<RoadOption> roads;   ///< all-reduce roads first
  /// The servers of `roads` to which messages are cut evenly, taking each message whole: for methods of
  /// systems that hand them out so (Method::servers). The search does not look for plans on them. Empty until
  /// price_whole_messages().
  std::vector<RoadOption> whole;
  void price_whole_messages(const Cluster& cluster);

  /// The option with this road, of both lists; nullptr where it is in neither.
  const RoadOption* option_of(const Road& road) const;
  /// What an option with this road is late by, none where there is none.
  RoadDelay delay_of(const Road& road) const;
  /// Each option, of both lists, by what its road says.
  void delay(const std::function<RoadDelay(const Road&)>& by);

  /// A plan with everything but messages, order and barrier filled in.
  Plan empty_plan(const Road& road) const;
  /// A method's plan, with the job's barrier where it has one.
  Plan with_barrier(Plan plan) const;
};

/// The same servers taking each message whole; nothing for a road without servers, or with one, which takes
/// everything whole, or with some that do.
std::optional<Road> taking_messages_whole(const Road& road);

/// A job over one transport of its cluster. Both outlive it.
struct TransportView {
  const Planning& job;
  const Cluster& cluster;
  std::string transport = {};  ///< of the plans over it; empty where the cluster has one
};

/// What the roads of a question may be.
struct RoadLimits {
  int colocated_servers = 0;  ///< largest S on the workers' hosts; 0: up to the number of workers
  int dedicated_servers = 0;  ///< server ranks that exist beside the workers; 0: none
  bool hashed = false;        ///< also servers that take whole messages in turn
};

/// Roads worth pricing on this cluster: the ring, every algorithm that the cluster's probes have run (at any
/// number of workers), colocated servers 1, 2, 4, ... up to the limit (and the limit itself) and all measured
/// numbers, dedicated servers likewise, two or more of them also hashed where the limits say so, and all of
/// them also behind a local sum where hosts have several workers. An algorithm that no probe has run is left
/// out, since the executor's transport may not have it; name it explicitly to have it priced by its formula.
std::vector<Road> roads_for(const Cluster& cluster, int workers, const RoadLimits& limits);

/// Without colocated servers in numbers that were not measured where as many servers as workers were, of the
/// same kind: the lowest of several formulas is the one that errs most in its favour, and they err by more
/// than such roads differ.
std::vector<Road> worth_pricing(const std::vector<Road>& roads, const Cluster& cluster, int workers);

}  // namespace commtune::tuner
