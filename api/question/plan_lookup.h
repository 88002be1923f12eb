#pragma once
// From what a user calls a stored plan to its row, and from there to the other plans of its ranking.

#include <optional>
#include <string>
#include <vector>

#include "store/rows.h"
#include "store/store.h"

namespace commtune::api {

/// The stored plan with this id, these first digits of its digest (at least 4), or the "latest" chosen one:
/// the one lookup of all commands and routes. Throws Error{kNotFound} for "latest" where nothing was planned.
std::optional<PlanRow> look_up_plan(const Store& store, const std::string& text);
/// The same; throws Error{kNotFound} also where nothing has this name.
PlanRow find_stored_plan(const Store& store, const std::string& text);

/// A method of a ranking.
struct RankedMethod {
  std::string method;
  std::optional<RowId> plan;  ///< absent: its plan was not stored
  std::string transport{};    ///< that its plan wants; empty: its cluster has one
};
/// The ranking that this plan was chosen in, best predicted first. Throws Error{kBadInput} for another plan.
std::vector<RankedMethod> ranking_of(const PlanRow& row);
/// The first that goes over another transport than this one, if this program has it.
std::optional<RankedMethod> next_over_another(const std::vector<RankedMethod>& ranking,
                                              const std::string& transport);
/// The chosen plan of the ranking that a stored plan is of: itself, or one that was stored with it. Absent:
/// it is of none.
std::optional<PlanRow> chosen_of_ranking(const Store& store, RowId plan);

/// name    a method's (over several transports the best of that name), "chosen", "best" or "worst"
/// throws  as ranking_of; Error{kNotFound} naming the methods that there are
RankedMethod method_of(const PlanRow& row, const std::string& name);

/// Of a ranking or of a run. Throws Error{kStorage} where it is missing.
PlanRow plan_with_id(const Store& store, RowId id);
/// The profile that a plan was stored with. Throws Error{kStorage} where it is missing.
Profile profile_of(const Store& store, const PlanRow& row);

}  // namespace commtune::api
