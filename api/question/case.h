#pragma once
// A question with everything looked up: what tuner::tune() gets, and what is stored to ask it again.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
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

/// Applies an allocation and overrides. Throws Error{kNotFound} naming nodes that the cluster does not have.
///
/// allocation  the question's, or a candidate's
Case make_case(const Question& question, const Allocation& allocation, Profile profile,
               const Cluster& fitted);

/// For whoever answers many: throws Error{kBadInput} where so many draws for so many tensors, or so many
/// workers, would take longer than a scheduler waits.
void check_draws(int draws, const Profile& profile);
void check_size(const Case& made);

/// What it takes to make the case again later, from the fit and the stored (changed) profile.
///
/// fit   absent: the cluster was given
/// fits  by transport, where the cluster has several
nlohmann::json record_of(const Case& made, const Overrides& overrides, const std::string& cluster,
                         std::optional<std::int64_t> fit,
                         const std::map<std::string, std::int64_t>& fits = {});
/// The cluster and options of a record, from the fits' snapshots.
Case case_from_record(const nlohmann::json& record, const Profile& profile, const Cluster& fitted);

}  // namespace commtune::api
