#include "api/question/fit_marks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "executor/base/wire_revision.h"
#include "perfmodel/base/error.h"
#include "probes/analysis/fit_cluster.h"
#include "probes/host/fact_differences.h"

namespace commtune::api {
namespace {

constexpr std::size_t kMostNamed = 3;

std::string first_of(const std::vector<std::string>& differences) {
  const std::size_t named = std::min(kMostNamed, differences.size());
  std::string text = fmt::format(
      "{}", fmt::join(differences.begin(), differences.begin() + static_cast<std::ptrdiff_t>(named), "; "));
  if (differences.size() > named) text += fmt::format("; and {} more", differences.size() - named);
  return text;
}

}  // namespace

FitAge fit_age(const Settings& settings) { return {settings.fit_age, system_now()}; }

bool is_stale(const FitSummary& fit, const FitAge& age) { return age.now - fit.probed >= age.limit; }

std::vector<std::string> stored_differences(const Cluster& snapshot, const ClusterRow& newest) {
  probes::Facts now = newest.newest_facts;
  now[std::string(probes::kWireRevisionFact)] = std::to_string(kWireRevision);
  return probes::fact_differences(snapshot.facts, now);
}

FitMarks marks_of(const Store& store, const FitSummary& fit, const Cluster& snapshot, const FitAge& age) {
  const auto cluster = store.find_cluster(fit.cluster);
  return {is_stale(fit, age), cluster ? stored_differences(snapshot, *cluster) : std::vector<std::string>{}};
}

void refuse_differences(const std::vector<std::string>& differences) {
  if (differences.empty()) return;
  throw Error(ErrorCode::kConflict,
              fmt::format("--strict: the fits were made under other conditions: {}; probe again, or leave "
                          "--strict out",
                          first_of(differences)));
}

std::string to_text(const FitMarks& marks) {
  std::string text;
  if (marks.stale)
    text += "warning: the fit is older than fits are trusted without a mark (setting fit_age); probe again\n";
  if (!marks.differences.empty())
    text +=
        fmt::format("warning: the fit was made under other conditions: {}\n", first_of(marks.differences));
  return text;
}

void put_marks(nlohmann::json& document, const FitMarks& marks) {
  document["stale"] = marks.stale;
  document["differences"] = marks.differences;
}

FitMarks marks_from_json(const nlohmann::json& document) {
  return {document.value("stale", false), document.value("differences", std::vector<std::string>{})};
}

}  // namespace commtune::api
