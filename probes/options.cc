#include <cmath>

#include "perfmodel/error.h"
#include "probes/probe.h"

namespace commtune::probes {

namespace {

void require(bool holds, const std::string& field, const std::string& value, const std::string& rule) {
  if (!holds) throw Error(ErrorCode::kBadInput, field + " = " + value + ": must be " + rule);
}

}  // namespace

Seconds default_budget(int hosts) {
  // Rounds of pairs and latencies of rings grow with the number of hosts; so does the start of the ranks,
  // which is not counted here.
  constexpr Seconds kFixed{3.2}, kPerHost{0.9}, kMost{60.0};
  return std::min(kFixed + kPerHost * hosts, kMost);
}

void ProbeOptions::check() const {
  if (budget) {
    require(std::isfinite(budget->count()) && budget->count() > 0, "budget",
            std::to_string(budget->count()) + " s", "positive");
  }
  require(first.count >= 4 && first.count % 4 == 0, "first size", std::to_string(first.count) + " B",
          "at least 4 B and whole float32 elements");
  require(last >= first, "last size", std::to_string(last.count) + " B",
          "at least the first size, " + std::to_string(first.count) + " B");
  require(std::isfinite(factor) && factor > 1, "factor", std::to_string(factor), "above 1");
  require(warmup >= 0, "warm-up", std::to_string(warmup), "at least 0");
  require(iterations >= 1, "iterations", std::to_string(iterations), "at least 1");
  require(max_iterations >= iterations, "most iterations", std::to_string(max_iterations),
          "at least the iterations, " + std::to_string(iterations));
  require(std::isfinite(width) && width > 0 && width < 1, "width", std::to_string(width), "between 0 and 1");
  for (const ParameterServer& server : servers) {
    require(server.servers >= 1, "servers", std::to_string(server.servers), "at least 1");
  }
  for (const int group : groups) require(group >= 2, "group", std::to_string(group), "at least 2 ranks");
  require(most_pairs_hosts >= 2, "most hosts for all pairs", std::to_string(most_pairs_hosts), "at least 2");
  require(std::isfinite(timeout.count()) && timeout.count() > 0, "timeout",
          std::to_string(timeout.count()) + " s", "positive");
}

}  // namespace commtune::probes
