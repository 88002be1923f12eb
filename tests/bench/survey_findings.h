#pragma once
// What the survey's comparison (its Table 2) comes to, in our words: statements about each cell (model, GPUs)
// that can be counted on the published times and on predicted ones.

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/bench/survey_model.h"

namespace commtune::bench {

struct Finding {
  const char* name;  ///< of its test
  const char* text;
  /// time  seconds of a method in this cell
  std::function<bool(const std::function<double(std::string_view method)>& time, std::string_view model,
                     int gpus)>
      holds;
};

/// The six.
const std::vector<Finding>& findings();

struct FindingCount {
  int holds = 0, cells = 0;
};
using CellTimes =
    std::function<std::optional<double>(std::string_view model, std::string_view method, int gpus)>;
/// Over all cells of the results in which every method that the finding asks for has a time.
FindingCount count_cells(const Finding& finding, const SurveyResults& results, const CellTimes& seconds);

}  // namespace commtune::bench
