#include "api/output/whatif_csv.h"

#include <fmt/format.h>

namespace commtune::api {
namespace {

/// A cell of a CSV file (RFC 4180): quoted where it holds a comma or a quote.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

/// Empty where it is not known.
std::string cell(const std::optional<double>& number) { return number ? fmt::format("{}", *number) : ""; }

}  // namespace

std::string to_csv(const std::vector<tuner::ScaleCurve>& curves) {
  std::string csv =
      "method,workers,iteration_seconds,low_seconds,high_seconds,samples_per_second,speedup,"
      "efficiency_ratio,road,basis\n";
  for (const tuner::ScaleCurve& curve : curves) {
    for (const tuner::ScalePoint& p : curve.points) {
      csv += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", curve.method, p.workers, p.iteration.count(),
                         p.low.count(), p.high.count(), cell(p.samples_per_second), p.speedup, p.efficiency,
                         cell(describe(p.road)), p.basis == Basis::kMeasured ? "measured" : "formula");
    }
  }
  return csv;
}

std::string to_csv(const std::vector<tuner::ServerPoint>& points) {
  std::string csv = "servers,title,road,iteration_seconds,samples_per_second,marginal_gain_ratio\n";
  for (const tuner::ServerPoint& p : points) {
    csv += fmt::format("{},{},{},{},{},{}\n", p.servers, cell(p.title), cell(describe(p.road)),
                       p.iteration.count(), cell(p.samples_per_second), p.marginal_gain);
  }
  return csv;
}

std::string to_csv(const std::vector<tuner::PhaseCell>& cells) {
  std::string csv =
      "workers,latency_factor,time_per_byte_factor,published,road,iteration_seconds,joint_win_ratio,"
      "binding\n";
  for (const tuner::PhaseCell& c : cells) {
    csv +=
        fmt::format("{},{},{},{},{},{},{},{}\n", c.workers, c.latency_factor, c.time_per_byte_factor,
                    cell(c.published), cell(c.road), c.iteration.count(), c.joint_win, to_string(c.binding));
  }
  return csv;
}

}  // namespace commtune::api
