#pragma once
// "How should this model move its gradients there?" as a scheduler or a page asks it: a profile, a cluster as
// it was fitted, where the job would run, and what to assume in place of what was measured.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/cluster.h"
#include "perfmodel/json_reader.h"
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

/// Where a job would run.
struct Seats {
  int workers = 0;           ///< 0: all that the nodes have
  std::string nodes;         ///< "tux[0-3,12]"; empty: all of the cluster
  int node_count = 0;        ///< 0: not said
  int devices_per_node = 0;  ///< 0: the cluster's slots
  tuner::RoadLimits limits;
};

struct Candidate {
  std::string name;
  std::string cluster;  ///< empty: the question's
  Seats seats;
};

/// Which plans of a ranking are stored.
enum class Keep { kNone, kChosen, kAll };

struct Question {
  std::string model;               ///< a name as in find_profile; empty with `profile`
  std::optional<Profile> profile;  ///< a whole one in the request
  std::string cluster;
  Seats seats;
  Overrides overrides;
  int draws = 64;
  std::uint64_t seed = 1;
  Keep keep = Keep::kChosen;
  bool strict = false;   ///< as TuneRequest::strict
  int most_workers = 0;  ///< recommend a number of workers up to this; 0: do not
  double least_efficiency = 0.8;
  std::vector<Candidate> candidates;  ///< empty: one job
  /// Run what the doubt cannot tell apart, on the first ranks of the cluster; absent: prediction chooses.
  std::optional<tuner::VerifyLimits> verify;
};

std::string to_string(Keep keep);

/// Reads a PlanRequest of api/openapi.yaml. Throws Error{kBadInput} with the path.
Question question_from_json(const nlohmann::json& document);
/// Of a request's query or body: scale factors in [0.001, 1000].
Overrides overrides_from_json(const JsonPlace& place);
nlohmann::json to_json(const Overrides& overrides);

}  // namespace commtune::api
