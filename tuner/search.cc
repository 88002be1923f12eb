#include "tuner/search.h"

#include <algorithm>

#include "perfmodel/error.h"

namespace commtune::tuner {

void SearchOptions::check() const {
  if (!(gap_limit >= 0)) {
    throw Error(ErrorCode::kBadInput, "gap_limit = " + std::to_string(gap_limit) + ": must be at least 0");
  }
}

SearchReport joint_search(const Planning&, const std::vector<Candidate>& starts,
                          const SearchOptions& options) {
  options.check();
  const auto best = std::min_element(
      starts.begin(), starts.end(),
      [](const Candidate& a, const Candidate& b) { return a.prediction.iteration < b.prediction.iteration; });
  SearchReport report;
  report.best = best->plan;
  report.prediction = best->prediction;
  return report;
}

}  // namespace commtune::tuner
