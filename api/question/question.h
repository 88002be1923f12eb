#pragma once
// "How should this model move its gradients there?": all that can be asked, whoever asks. Flags of the
// command line and bodies of requests fill in the same struct: a profile, a cluster as it was fitted, where
// the job would run, what to assume in place of what was measured, and which plans are to be run before the
// answer.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/base/json_reader.h"
#include "perfmodel/cluster.h"
#include "perfmodel/profile.h"
#include "tuner/tuner.h"
#include "tuner/verify.h"

namespace commtune::api {

/// "What if". Factors of 1 change nothing.
struct Overrides {
  double bandwidth_scale = 1;     ///< 2: twice as fast a network
  double latency_scale = 1;       ///< 2: twice the latency
  double device_speed_scale = 1;  ///< 2: twice as fast a device
  double gradient_scale = 1;      ///< 0.5: half the bytes
  int batch = 0;                  ///< samples a worker; 0: the profile's. Layer times grow in proportion.

  bool any() const;
  bool operator==(const Overrides&) const = default;
};

/// Which cluster is meant.
struct ClusterChoice {
  std::string name;              ///< its current fit in the store
  std::optional<Cluster> given;  ///< in place of that: measured elsewhere, or made up
  std::string transport = {};    ///< one of those that it was probed over; empty: all
};

/// Where a job would run.
struct Allocation {
  int workers = 0;           ///< 0: all that the nodes have
  std::string nodes;         ///< "tux[0-3,12]"; empty: all of the cluster
  int node_count = 0;        ///< 0: not said
  int devices_per_node = 0;  ///< 0: the cluster's slots
  tuner::RoadLimits limits;
};

struct CandidateAllocation {
  std::string name;
  std::string cluster;  ///< empty: the question's
  Allocation allocation;
};

/// Which plans of a ranking are stored.
enum class Keep { kNone, kChosen, kAll };

struct Question {
  std::string model;               ///< a name as in find_profile; empty with `profile`
  std::optional<Profile> profile;  ///< a whole one
  ClusterChoice cluster;
  Allocation allocation;
  Overrides overrides;
  int draws = 64;
  std::uint64_t seed = 1;
  bool thorough = false;                ///< TuneOptions::thorough
  std::optional<Barrier> barrier = {};  ///< TuneOptions::barrier
  /// What the plans cast gradients to while they travel.
  WireFormat wire = WireFormat::kAsIs;
  Keep keep = Keep::kChosen;
  bool strict = false;   ///< refuse a fit that was made under other conditions than those that hold now
  int most_workers = 0;  ///< recommend a number of workers up to this; 0: do not
  double least_efficiency = 0.8;
  std::vector<CandidateAllocation> candidates;  ///< empty: one job
  /// Explain the plan of this method, or of the chosen one where it is empty; absent: do not.
  std::optional<std::string> explain = {};
  std::optional<Seconds> plan_time = {};  ///< longest planning, each time anew; absent: whoever answers says
  /// Run the leading plans for about so long, correct the costs by what that takes, and plan again; absent:
  /// do not.
  std::optional<Seconds> check = {};
  /// Run what the doubt cannot tell apart; absent: prediction chooses.
  std::optional<tuner::VerifyLimits> verify = {};

  bool asks_for_runs() const { return check || verify; }
  /// Not of a whole cluster and a profile as they are: what the answer was made from has to be stored with
  /// it.
  bool is_changed() const;
};

/// Plans are run on the first ranks of a registered cluster as it is. Throws Error{kBadInput} naming what of
/// a question that asks for runs says otherwise.
void check_runs(const Question& question);

/// Throws Error{kBadInput} naming what of a question with candidates is meant for one job.
void check_candidates(const Question& question);

std::string to_string(Keep keep);
/// Throws Error{kBadInput} for what is none of none, chosen and all.
Keep keep_named(const std::string& name);

/// Reads a PlanRequest of api/openapi.yaml. Throws Error{kBadInput} with the path.
Question question_from_json(const nlohmann::json& document);
/// Of a request's query or body: scale factors in [0.001, 1000].
Overrides overrides_from_json(const JsonPlace& place);
nlohmann::json to_json(const Overrides& overrides);

}  // namespace commtune::api
