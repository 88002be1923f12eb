#pragma once
// A question with everything looked up: what tuner::tune() gets, and what is stored to ask it again.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/question/question.h"
#include "perfmodel/cluster.h"
#include "perfmodel/profile.h"
#include "tuner/tuner.h"

namespace commtune::api {

/// A question with everything looked up: what tuner::tune() gets.
struct Case {
  Profile profile;
  Cluster cluster;
  tuner::TuneOptions options;
};

/// Throws Error{kBadInput} where so many draws for so many tensors would take longer than a scheduler waits.
void check_draws(int draws, const Profile& profile);

/// Applies seats and overrides. Throws Error{kNotFound} naming nodes that the cluster does not have,
/// Error{kBadInput} for too many workers or draws.
Case make_case(const Question& question, const Seats& seats, const Profile& profile, const Cluster& fitted);

/// What it takes to make the case again later, from the fit and the stored (changed) profile.
nlohmann::json record_of(const Case& made, const Overrides& overrides, const std::string& cluster,
                         std::int64_t fit);
/// The cluster and options of a record, from the fit's snapshot.
Case case_from_record(const nlohmann::json& record, const Profile& profile, const Cluster& fitted);

}  // namespace commtune::api
