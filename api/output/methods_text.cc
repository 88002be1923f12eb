#include "api/output/methods_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/output/report.h"
#include "api/output/table.h"
#include "tuner/methods/method.h"
#include "tuner/methods/where_best.h"

namespace commtune::api {
namespace {

std::string title_of(std::string_view method) {
  const tuner::Method* known = tuner::find_method(method);
  return std::string(known == nullptr ? method : known->title);
}

}  // namespace

std::string methods_table() {
  Table table({{"method", Align::kLeft},
               {"title", Align::kLeft},
               {"road", Align::kLeft},
               {"best in"},
               {"source", Align::kLeft},
               {"what the plan is", Align::kLeft}});
  for (const tuner::Method& method : tuner::methods()) {
    const auto best = std::ranges::count(tuner::where_best(), method.name, &tuner::MethodCell::method);
    table.add({std::string(method.name), std::string(method.title), to_string(method.architecture),
               std::to_string(best), std::string(method.source), std::string(method.does)});
  }
  return table.text() +
         fmt::format(
             "\nbest in: of {} jobs of a sweep over models, workers, latency and bandwidth (--where lists "
             "them)\n\"after\": parts are reconstructed from an abstract\n",
             tuner::where_best().size());
}

std::string where_best_table() {
  Table table({{"model", Align::kLeft},
               {"workers"},
               {"latency"},
               {"bandwidth"},
               {"best of the literature", Align::kLeft},
               {"ahead of the next"},
               {"joint wins"},
               {"gap to the bound"}});
  for (const tuner::MethodCell& row : tuner::where_best()) {
    table.add({std::string(row.model), std::to_string(row.workers), format_time(row.latency),
               format_bandwidth(SecondsPerByte{1 / row.bytes_per_second}), title_of(row.method),
               percent(row.ahead), fmt::format("{:.3f}x", row.joint_win), percent(row.gap)});
  }
  return table.text();
}

}  // namespace commtune::api
