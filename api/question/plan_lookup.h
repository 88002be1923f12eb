#pragma once
// From what a user calls a stored plan to its row, and from there to the other plans of its ranking.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/rows.h"
#include "store/store.h"

namespace commtune::api {

/// The stored plan with this id, these first digits of its digest (at least 4), or the "latest" chosen one:
/// the one lookup of all commands and routes. Throws Error{kNotFound} for "latest" where nothing was planned.
std::optional<PlanRow> look_up_plan(const Store& store, const std::string& text);
/// The same; throws Error{kNotFound} also where nothing has this name.
PlanRow find_stored_plan(const Store& store, const std::string& text);

/// The methods of the ranking that this plan was chosen in, best predicted first, with their stored plans.
std::vector<std::pair<std::string, RowId>> ranking_of(const PlanRow& row);
RowId plan_of_method(const PlanRow& row, const std::vector<std::pair<std::string, RowId>>& ranking,
                     const std::string& method);
PlanRow plan_with_id(const Store& store, RowId id);

}  // namespace commtune::api
