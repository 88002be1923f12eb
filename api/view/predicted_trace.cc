#include "api/view/predicted_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "api/question/plan_view.h"
#include "executor/base/new_file.h"
#include "executor/session/trace.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error(ErrorCode::kStorage, fmt::format("{}: cannot be read", path.string()));
  return text.str();
}

/// The first moment of the first iteration that a trace holds.
Seconds beginning_of(const std::string& trace) {
  std::optional<double> first;
  const auto document = nlohmann::json::parse(trace, nullptr, false);
  if (document.is_object() && document.contains("traceEvents")) {
    for (const nlohmann::json& event : document["traceEvents"]) {
      if (event.value("ph", "") != "X") continue;
      const double at = event.value("ts", 0.0);
      first = std::min(first.value_or(at), at);
    }
  }
  return Seconds{1e-6 * first.value_or(0)};
}

}  // namespace

void add_predicted_trace(const std::filesystem::path& folder, const Plan& plan, const Profile& profile,
                         const Cluster& cluster) {
  const std::filesystem::path all = folder / "all_ranks.json", predicted = folder / "predicted.json";
  const std::string measured = read_text(all);
  const Timeline timeline = predicted_iteration(plan, profile, cluster).timeline;
  write_predicted_trace(predicted.string(), plan, profile, timeline, beginning_of(measured));
  const std::array<std::string, 2> texts{measured, read_text(predicted)};
  write_file(all, merge_traces(texts));
}

}  // namespace commtune::api
