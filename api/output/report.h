#pragma once
// What people read: results of actions and rows of the store as text, in the units that people expect (µs,
// MiB, GB/s).

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/actions/probe.h"
#include "api/actions/run.h"
#include "api/actions/tune.h"
#include "perfmodel/cluster.h"
#include "store/rows.h"

namespace commtune::api {

std::string percent(double ratio);                                       ///< 0.0312 -> "3.1 %"
std::string signed_percent(double ratio);                                ///< "+3.1 %"
std::string count(double value);                                         ///< 12345.6 -> "12,346"
std::string batch_text(int batch);                                       ///< "64"; "unknown" for 0
std::string rate_text(const std::optional<double>& samples_per_second);  ///< "12,346", "0.36", "unknown"

/// Links, operations and scalars with their alpha, bandwidth and quality.
enum class FitDetail {
  kAll,
  kRoads,  ///< links, and whole roads on all ranks; says how many more there are
};
std::string fit_table(const Cluster& cluster, FitDetail detail = FitDetail::kAll);

/// What a probe found: the fits, hosts that depart from the rest, and what more time would buy.
std::string probe_report(const ProbeOutcome& outcome);

/// The ranking with the lower bound and the sentence that says why the winner wins.
std::string ranking_report(const TuneOutcome& outcome);

/// Candidates of a comparison (CandidateAnswers of api/openapi.yaml), and which is the fastest.
std::string candidates_report(const nlohmann::json& compared);

/// More on the same answer: what binds each method, bounds and costs by road, doubt.
std::string explanation(const TuneOutcome& outcome);

/// One line a run: predicted beside measured.
std::string run_table(const std::vector<RunOutcome>& outcomes);

/// One run in words: that it was a replay, iterations, waiting, the gradient check.
std::string run_report(const RunOutcome& outcome);

std::string when(Timestamp time);  ///< "2026-11-21 02:26:56"

}  // namespace commtune::api
