#include "api/rest/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "api/version.h"

namespace commtune::api::rest {
namespace {

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

std::string single(std::string_view name, std::string_view type, std::string_view help, double value) {
  return head(name, type, help) + fmt::format("{} {}\n", name, value);
}

double resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  in >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double open_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  return error ? 0 : static_cast<double>(std::distance(begin(all), end(all)));
}

}  // namespace

void Histogram::observe(double value) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), value);
  buckets_[static_cast<std::size_t>(bound - kBounds.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const {
  std::uint64_t total = 0;
  for (const auto& bucket : buckets_) total += bucket.load(std::memory_order_relaxed);
  return total;
}

std::string Histogram::text(std::string_view name, std::string_view labels) const {
  const std::string_view comma = labels.empty() ? "" : ",";
  const std::string braced = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  std::string out;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    total += buckets_[i].load(std::memory_order_relaxed);
    const std::string bound = i < kBounds.size() ? fmt::format("{}", kBounds[i]) : "+Inf";
    out += fmt::format("{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma, bound, total);
  }
  out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, braced, sum_.load(std::memory_order_relaxed), name,
                     braced, total);
  return out;
}

Metrics::Metrics(std::vector<std::pair<std::string, std::string>> routes) : routes_(std::move(routes)) {
  for (std::size_t i = 0; i <= routes_.size(); ++i) per_route_.push_back(std::make_unique<PerRoute>());
}

void Metrics::answered(std::size_t route, int status, Seconds time) {
  PerRoute& own = *per_route_[std::min(route, routes_.size())];
  own.answers[static_cast<std::size_t>(std::clamp(status, 0, 599))].fetch_add(1, std::memory_order_relaxed);
  if (route < routes_.size()) own.time.observe(time.count());
}

std::string Metrics::text(const Gauges& gauges) const {
  std::string out = head("commtune_build_info", "gauge", "Version of the service.") +
                    fmt::format("commtune_build_info{{version=\"{}\"}} 1\n", kVersion);
  out += head("commtune_http_requests_total", "counter", "Answers by route and status.");
  for (std::size_t i = 0; i < per_route_.size(); ++i) {
    for (std::size_t status = 0; status < kStatuses; ++status) {
      const std::uint64_t count = per_route_[i]->answers[status].load(std::memory_order_relaxed);
      if (count == 0) continue;
      const auto [method, pattern] =
          i < routes_.size() ? routes_[i] : std::pair<std::string, std::string>{"", ""};
      out += fmt::format("commtune_http_requests_total{{method=\"{}\",route=\"{}\",status=\"{}\"}} {}\n",
                         method, pattern, status, count);
    }
  }
  out += head("commtune_http_request_duration_seconds", "histogram",
              "From the head of a request to its answer.");
  for (std::size_t i = 0; i < routes_.size(); ++i)
    if (per_route_[i]->time.count() > 0)
      out += per_route_[i]->time.text(
          "commtune_http_request_duration_seconds",
          fmt::format("method=\"{}\",route=\"{}\"", routes_[i].first, routes_[i].second));
  const auto counter = [&out](std::string_view name, std::string_view help, const auto& value) {
    out += single(name, "counter", help, static_cast<double>(value.load(std::memory_order_relaxed)));
  };
  counter("commtune_plans_cached_total", "Questions that were answered from memory.", plans_cached);
  counter("commtune_plans_made_total", "Questions that were computed.", plans_made);
  counter("commtune_plans_incomplete_total",
          "Of them, those that the time limit ended with the best plan so far.", plans_incomplete);
  counter("commtune_plans_unknown_total", "Questions that nothing measured could answer.", plans_unknown);
  counter("commtune_http_rate_limited_total", "Requests beyond a token's rate.", rate_limited);
  counter("commtune_http_not_authenticated_total", "Requests without a valid token.", not_authenticated);
  counter("commtune_http_slow_requests_total", "Requests that took longer than --slow.", slow_requests);
  counter("commtune_http_idempotent_repeats_total", "Answers given again for an Idempotency-Key.",
          idempotent_repeats);
  const auto histogram = [&out](std::string_view name, std::string_view help, const Histogram& value) {
    out += head(name, "histogram", help) + value.text(name, "");
  };
  histogram("commtune_planning_duration_seconds", "Computing one answer.", planning);
  histogram("commtune_plan_prediction_error_ratio",
            "|predicted / measured - 1| of results handed in with a token.", prediction_error);
  histogram("commtune_probe_duration_seconds", "Probes that the service ran.", probe_duration);
  histogram("commtune_store_write_duration_seconds", "From asking for a write to its being on the disk.",
            write_time);
  out += single("commtune_http_in_flight", "gauge", "Requests being answered.",
                static_cast<double>(in_flight.load(std::memory_order_relaxed)));
  out += single("commtune_http_connections", "gauge", "Open connections.", gauges.connections);
  out += single("commtune_event_streams", "gauge", "Clients that follow events.", gauges.event_streams);
  out += single("commtune_jobs_running", "gauge", "Jobs that this service runs.", gauges.jobs_running);
  out += single("process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
  out += single("process_open_fds", "gauge", "Open descriptors.", open_descriptors());
  out += single("process_start_time_seconds", "gauge", "Unix time of the start.", gauges.started_seconds);
  return out;
}

}  // namespace commtune::api::rest
