#pragma once
// An order carried out on one rank.

#include <functional>
#include <nlohmann/json.hpp>

#include "api/rank/reporter.h"
#include "api/wire/order.h"
#include "api/wire/order_reader.h"
#include "executor/transport/transport.h"

namespace commtune::api {

/// Collective. Reports progress and what is found on the way; returns the result (rank 0's counts).
///
/// probe  {"cluster", "links", "end": "complete" | "budget" | "stopped" | "settled", "would_measure",
/// "notes",
///        "elapsed_seconds", "budget_split", "traffic_bytes", "tools"}; found on the way: "facts" once, then
///        "sample"s
/// run    {}; found on the way: "facts" once, "turn" {"plan"} whenever a plan begins one, "iteration"
/// {"plan",
///        "seconds"}, and for each plan once "report" {"plan", "report"} or "refused" {"plan", "code",
///        "message"}
/// session  as a run, of plans numbered from 0 in the order in which they come
/// orders   where a session's rank 0 finds its plans
/// stop_requested  asked now and then; when it becomes true a probe ends in order, a run with
///        Error{kInterrupted}
nlohmann::json carry_out(const Order& order, Transport& transport, const Reporter& reporter,
                         OrderReader& orders, const std::function<bool()>& stop_requested);

}  // namespace commtune::api
