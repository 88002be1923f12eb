#pragma once
// Counters of the service, in Prometheus' text format 0.0.4. Safe from all threads.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/base/units.h"

namespace commtune::api::rest {

/// Observations in buckets.
class Histogram {
 public:
  static constexpr std::array<double, 14> kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                     0.1,    0.25,  0.5,    1,     2.5,  10,    60};
  void observe(double value);
  /// Lines of `name` with labels ("route=\"/livez\"", may be empty), without HELP and TYPE.
  std::string text(std::string_view name, std::string_view labels) const;
  std::uint64_t count() const;

 private:
  std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> buckets_{};
  std::atomic<double> sum_{0};
};

class Metrics {
 public:
  /// routes  "GET /v1/plans", ...; a label for each
  explicit Metrics(std::vector<std::pair<std::string, std::string>> routes);

  void answered(std::size_t route, int status, Seconds time);
  /// A request that no route has, or what never became a request.
  void refused(int status) { answered(routes_.size(), status, Seconds{}); }

  std::atomic<std::int64_t> in_flight{0};
  std::atomic<std::uint64_t> plans_cached{0}, plans_made{0}, plans_unknown{0}, plans_incomplete{0},
      rate_limited{0}, not_authenticated{0}, slow_requests{0}, idempotent_repeats{0};
  Histogram planning, prediction_error, probe_duration, write_time;

  /// Values that somebody else has, asked when the text is made.
  struct Gauges {
    int connections = 0;
    int event_streams = 0;
    int jobs_running = 0;
    double started_seconds = 0;  ///< Unix time
  };
  std::string text(const Gauges& gauges) const;

 private:
  static constexpr std::size_t kStatuses = 600;
  struct PerRoute {
    std::array<std::atomic<std::uint64_t>, kStatuses> answers{};
    Histogram time;
  };
  std::vector<std::pair<std::string, std::string>> routes_;  // method, pattern
  std::vector<std::unique_ptr<PerRoute>> per_route_;         // and one for all that have no route
};

}  // namespace commtune::api::rest
