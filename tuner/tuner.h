#pragma once
// The main job: which plan should this model use on this cluster, how good is that answer, and why.
// Pure: no I/O, no clock, no thread; the same question has the same answer.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/cost/road_factor.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "perfmodel/simulate/simulate.h"
#include "tuner/methods/method.h"
#include "tuner/planning.h"
#include "tuner/trials.h"

namespace commtune::tuner {

struct TuneOptions {
  int workers = 0;          ///< N >= 1; 0: the cluster's ranks less the dedicated servers
  RoadLimits limits;        ///< servers that may be used
  std::vector<Road> roads;  ///< empty: roads_for(cluster, workers, limits)
  Trials trials;            ///< empty: nothing was run
  /// What all plans cast gradients to. They lose something: their answer has no bounds (cast_answer.h).
  WireFormat wire = WireFormat::kAsIs;
  /// What the program that trains waits for, whatever a method asks for. Empty: each plan has its method's.
  std::optional<Barrier> barrier;
  /// Settings of named methods are searched several times as closely (byte_scheduler.h), which takes so long.
  bool thorough = false;
  double gap_limit = 0.002;            ///< the joint search stops when its plan is this close to the bound
  std::uint64_t max_events = 300'000;  ///< and when it has simulated this many message events
  int draws = 64;                      ///< parameter draws from the fits' covariance; 0: no doubt is computed
  std::uint64_t seed = 1;              ///< of the draws
  OutOfTime out_of_time;               ///< a clock is the caller's; then Answer::complete is false
  void check() const;                  ///< throws Error{kBadInput} naming field, value and rule
};

/// What the doubt in the fits does to one entry of the ranking.
struct Doubt {
  /// 5th and 95th percentile of the iteration time over the draws; of the chosen entry the latter is raised
  /// by its optimism.
  Seconds low{}, high{};
  double probability_best = 0;  ///< share of the draws in which it is the fastest
  double expected_regret = 0;   ///< mean of T / (best T of the draw) - 1
  Seconds at_upper_limits{};    ///< iteration time with every cost at the upper limit of its 90 % interval
  /// By how much the errors of its own road and plan shorten it in the draws in which it is the fastest, on
  /// average: what choosing it because it is predicted to be promises too much (the winner's curse).
  double optimism = 0;
};

/// What runs of an entry's plan took (verify.h).
struct MeasuredTime {
  Seconds median{};      ///< over all its iterations
  Seconds half_width{};  ///< of its 95 % interval: by the scatter of its rounds, if it had enough of them
  int iterations = 0;
  int rounds = 0;     ///< complete ones that it was measured in
  double behind = 0;  ///< how much longer than the fastest it took in the same rounds, as a part of that
};

/// One line of the ranking.
struct Entry {
  std::string method;  ///< "mg-wfbp", "joint", ...; "mg-wfbp@tcp" where the cluster has several transports
  std::string title;   ///< "MG-WFBP", "MG-WFBP over tcp"
  Plan plan;
  std::string digest;  ///< of the plan, where tune() made the entry: plan_digest()
  Prediction prediction;
  Seconds bound{};                           ///< of the plan's own road; 0 where it casts
  double gap = 0;                            ///< T / (bound over all roads) - 1
  std::optional<double> samples_per_second;  ///< of all workers together; empty: the batch is not known
  double speedup = 0;                        ///< over one worker
  std::size_t messages = 0;
  double server_imbalance = 1;  ///< the busiest server's bytes over their mean; 1 on roads without servers
  std::optional<Doubt> doubt;
  /// Where a run of the plan has its say in the prediction, the relative standard deviation of another; else
  /// 0.
  double run_deviation = 0;
  std::optional<MeasuredTime> measured;  ///< verify() only, of the plans that it ran
  std::string failure;                   ///< why the run of this plan failed; empty otherwise
};

/// Of the entry's plan; computed where the entry does not know it.
std::string plan_digest(const Entry& entry);

/// How much machinery the entry's method asks for; the joint plan counts as the most.
Effort effort_of(const Entry& entry);

/// What no lossless plan on a road goes below, as far as the costs are right: `bound` under the fitted ones,
/// `bound_low` with all of them at the lower limits of their 90 % intervals (prediction_limits.h).
struct RoadBound {
  Road road;
  Seconds bound{};
  std::string explanation;             ///< RoadCost::explanation
  std::optional<Seconds> bound_low{};  ///< absent where no doubt was computed
  std::string transport = {};          ///< empty where the cluster has one
};

/// A fit that the probe calls doubtful and that predictions rest on.
struct DoubtfulFit {
  std::string fit;  ///< "push-pull, 4 colocated servers, 4 workers, streamed"
  FitQuality quality;
  std::vector<std::string> methods;  ///< whose plans' roads it prices
};

/// Why verify() ended.
enum class VerifyEnd {
  kOneLeft,  ///< all others are slower, with certainty
  kAlike,    ///< those left differ by less than kIndifferent, with certainty
  kBudget,   ///< neither was certain when the time was spent
};
std::string to_string(VerifyEnd end);  ///< "one_left", "alike", "budget"

/// How measurements chose in place of predictions.
struct Verified {
  int plans = 0;   ///< that were run
  int rounds = 0;  ///< in which each of the plans that were still in question ran once
  Seconds elapsed{};
  VerifyEnd end = VerifyEnd::kBudget;
  std::string predicted;  ///< the method that was chosen by prediction
};

/// A leading plan that was run before the answer was given (check.h).
struct CheckedPlan {
  std::string method, title;
  std::string digest;  ///< of the plan
  Road road;
  int workers = 1;
  Seconds predicted{};         ///< by the costs from before
  Seconds measured{};          ///< median iteration
  Seconds half_width{};        ///< of its 95 % interval
  double factor = 1;           ///< on all costs of its road, with which it is predicted as it was measured
  double deviation = 0;        ///< relative, of the factor: what the measurement leaves open
  bool hidden = false;         ///< it hides what it sends, and so tells nothing of its road
  std::string transport = {};  ///< the plan's
};

/// What a run of it tells of.
TransportRoad road_of(const CheckedPlan& plan);

/// How the costs were corrected by running the leading plans.
struct Check {
  std::vector<CheckedPlan> plans;   ///< in the order in which they were run
  std::vector<RoadFactor> factors;  ///< that the roads' costs were multiplied by
  Seconds elapsed{};
  std::string before, before_title;  ///< the method that was chosen before
  bool changed = false;              ///< another plan is chosen now
  /// The best one by prediction, for which, or for whose road, there was no time; empty: the best one was
  /// run.
  std::string passed_over;
  std::string failure;  ///< why the answer is unchecked all the same; empty otherwise
};

struct Answer {
  std::string model;
  std::string cluster;
  int workers = 1;
  int batch = 1;               ///< 0: not known
  Seconds compute{};           ///< one worker's iteration
  double intensity = 0;        ///< I = operations per sample per parameter; 0 when the profile has none
  std::vector<Entry> ranking;  ///< best first: by prediction, or those that were run before the others
  WireFormat wire = WireFormat::kAsIs;  ///< what the plans cast to: then there are no bounds
  /// Of the roads that plans are searched on, and of the fastest plan's own; lowest first.
  std::vector<RoadBound> bounds;
  Seconds bound{};  ///< the lowest of the bounds: of the fitted costs and the roads priced here
  std::optional<Seconds> bound_low;  ///< the lowest at the edge of the fits' doubt
  std::size_t chosen = 0;            ///< index into ranking: with doubt, the least expected regret
  bool clear_winner = true;    ///< false: the leading plans are within the doubt, and the simplest was chosen
  std::optional<Check> check;  ///< absent: it was not asked for
  std::optional<Verified> verified;   ///< absent: prediction chose
  std::vector<DoubtfulFit> doubtful;  ///< worst first
  /// False: time was out before all methods were tried, the joint search had ended and doubt was computed.
  /// The ranking has what was priced by then, and without doubt the fastest was chosen.
  bool complete = true;
  std::string reason;  ///< one sentence: why the chosen plan wins and what binds it

  /// Its costs are those that runs of the leading plans found.
  bool checked() const { return check && check->failure.empty(); }
};

/// On a cluster that was probed over several transports every method is planned over each of them, in one
/// ranking whose plans name their transport; one over which no road can be priced is left out.
///
/// Throws Error{kBadInput} for options or a profile that do not fit; Error{kNotFound} when the cluster has no
/// fits that could price any road; Error{kPoorFit} when it has some, but none that is_usable();
/// Error{kTimeout} when time was out before any plan was priced.
Answer tune(const Profile& profile, const Cluster& cluster, const TuneOptions& options = {});

}  // namespace commtune::tuner
