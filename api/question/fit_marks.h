#pragma once
// What a user should know of the fit that an answer rests on: how old it is, and what is not any more as it
// was when it was made.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/settings.h"
#include "store/store.h"

namespace commtune::api {

/// From which age fits are marked, and what time it is.
struct FitAge {
  Seconds limit{};
  Timestamp now{};
};
FitAge fit_age(const Settings& settings);

/// By the age of its probe: costs that plans corrected since are no younger otherwise.
bool is_stale(const FitSummary& fit, const FitAge& age);

struct FitMarks {
  bool stale = false;                    ///< it is as old as the setting fit_age, or older
  std::vector<std::string> differences;  ///< probes::fact_differences

  bool any() const { return stale || !differences.empty(); }
  bool operator==(const FitMarks&) const = default;
};

/// What differs between a fit's facts and the newest ones that are stored of its cluster, together with what
/// this program would send.
std::vector<std::string> stored_differences(const Cluster& snapshot, const ClusterRow& newest);

FitMarks marks_of(const Store& store, const FitSummary& fit, const Cluster& snapshot, const FitAge& age);

/// For --strict. Throws Error{kConflict} naming the differences, if there are any.
void refuse_differences(const std::vector<std::string>& differences);

/// "warning: " lines; empty without marks.
std::string to_text(const FitMarks& marks);
/// Adds "stale" and "differences".
void put_marks(nlohmann::json& document, const FitMarks& marks);
/// What put_marks() added; none where it added nothing.
FitMarks marks_from_json(const nlohmann::json& document);

}  // namespace commtune::api
