#include "tests/bench/survey_findings.h"

#include <algorithm>

namespace commtune::bench {

const std::vector<Finding>& findings() {
  static const std::vector<Finding> list = {
      {"OverlapPaysOverServers", "overlap pays over servers: WFBP-PS beats BSP-PS",
       [](const auto& time, std::string_view, int) { return time("WFBP-PS") < time("BSP-PS"); }},
      {"OverlapWithFusionPaysOverAllToAll", "overlap with fusion pays over all-to-all: MG-WFBP beats BSP-A2A",
       [](const auto& time, std::string_view, int) { return time("MG-WFBP") < time("BSP-A2A"); }},
      {"SmallMessagesCostStartUps",
       "from 8 GPUs, small messages cost start-ups: MG-WFBP is no slower than WFBP-A2A (1 %)",
       [](const auto& time, std::string_view, int gpus) {
         return gpus < 8 || time("MG-WFBP") <= 1.01 * time("WFBP-A2A");
       }},
      {"PriorityDoesNotPayOverAllToAll",
       "priority and partition do not pay over all-to-all: ByteScheduler-A2A is behind MG-WFBP",
       [](const auto& time, std::string_view, int) { return time("ByteScheduler-A2A") > time("MG-WFBP"); }},
      {"MuchComputingPerByteNeedsNoCleverness",
       "much computing per byte (ResNet-50) needs no cleverness: WFBP over servers is within 2 % of the best",
       [](const auto& time, std::string_view model, int) {
         double best = time("MG-WFBP");
         for (const std::string_view method : kSurveyMethods) best = std::min(best, time(method));
         return model != "ResNet-50" || time("WFBP-PS") <= 1.02 * best;
       }},
      {"LittleComputingPerByteFavoursAllToAll",
       "little computing per byte (BERT-Large) favours all-to-all: MG-WFBP beats every method over servers",
       [](const auto& time, std::string_view model, int) {
         return model != "BERT-Large" ||
                time("MG-WFBP") < std::min({time("BSP-PS"), time("WFBP-PS"), time("ByteScheduler-PS")});
       }},
  };
  return list;
}

FindingCount count_cells(const Finding& finding, const SurveyResults& results, const CellTimes& seconds) {
  FindingCount count;
  for (const std::string_view model : kSurveyModels) {
    for (const int gpus : kSurveyGpus) {
      if (!results.seconds(model, "MG-WFBP", gpus)) continue;
      bool known = true;
      const auto time = [&](std::string_view method) {
        const auto found = seconds(model, method, gpus);
        known = known && found.has_value();
        return found.value_or(0);
      };
      const bool holds = finding.holds(time, model, gpus);
      if (!known) continue;
      ++count.cells;
      count.holds += holds ? 1 : 0;
    }
  }
  return count;
}

}  // namespace commtune::bench
