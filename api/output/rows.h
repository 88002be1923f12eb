#pragma once
// Rows of the store as tables: `tune show`.

#include <string>
#include <vector>

#include "api/question/fit_marks.h"
#include "store/rows.h"

namespace commtune::api {

std::string to_table(const std::vector<ClusterRow>& rows);
std::string to_table(const std::vector<SessionRow>& rows);
std::string to_table(const std::vector<SampleRow>& rows);
std::string to_table(const std::vector<FitSummary>& rows, const FitAge& age);
std::string to_table(const std::vector<ProfileSummary>& rows);
std::string to_table(const std::vector<PlanSummary>& rows);
std::string to_table(const std::vector<RunSummary>& rows);

}  // namespace commtune::api
