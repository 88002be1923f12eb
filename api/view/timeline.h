#pragma once
// A stored plan looked at closely, as JSON: its predicted iteration event by event, and what its messages
// carry.

#include <nlohmann/json.hpp>

#include "api/question/plan_view.h"

namespace commtune::api {

/// Timeline of api/openapi.yaml. Throws Error{kNotFound} when the plan was made without a fit.
nlohmann::json timeline_to_json(const PlanView& view);
/// The same as Chrome trace events: one process, a thread for the compute and one a channel.
nlohmann::json timeline_to_trace(const PlanView& view);
/// Messages of api/openapi.yaml.
nlohmann::json messages_to_json(const PlanView& view);

}  // namespace commtune::api
