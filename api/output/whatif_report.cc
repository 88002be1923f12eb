#include "api/output/whatif_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "api/output/report.h"
#include "api/output/table.h"
#include "api/text.h"
#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using tuner::PhaseCell;
using tuner::ScaleCurve;
using tuner::ScalePoint;

const ScaleCurve& curve_of(const ScaleOutcome& outcome, const std::string& method) {
  std::vector<std::string> known;
  for (const ScaleCurve& curve : outcome.curves) {
    if (curve.method == method) return curve;
    known.push_back(curve.method);
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("--method {}: not in the ranking{}", method, did_you_mean(method, known)));
}

/// The curve that is fastest at this number of workers. A method without a road there has no point.
std::pair<const ScaleCurve*, const ScalePoint*> best_at(const std::vector<const ScaleCurve*>& curves,
                                                        int workers) {
  std::pair<const ScaleCurve*, const ScalePoint*> best{nullptr, nullptr};
  for (const ScaleCurve* curve : curves) {
    for (const ScalePoint& point : curve->points) {
      if (point.workers == workers && (best.second == nullptr || point.iteration < best.second->iteration))
        best = {curve, &point};
    }
  }
  return best;
}

std::vector<int> workers_of(const ScaleOutcome& outcome) {
  std::vector<int> workers;
  for (const ScaleCurve& curve : outcome.curves)
    for (const ScalePoint& point : curve.points) workers.push_back(point.workers);
  std::sort(workers.begin(), workers.end());
  workers.erase(std::unique(workers.begin(), workers.end()), workers.end());
  return workers;
}

std::string basis_text(const ScalePoint& point) {
  return std::string(point.basis == Basis::kMeasured ? "measured" : "formula") +
         (point.extrapolated ? ", beyond the probed sizes" : "");
}

std::string detail_table(const ScaleOutcome& outcome, const std::vector<const ScaleCurve*>& curves) {
  Table table({{"workers"},
               {"method", Align::kLeft},
               {"road", Align::kLeft},
               {"iteration"},
               {"90 % range"},
               {"samples/s"},
               {"speed-up"},
               {"efficiency"},
               {"basis", Align::kLeft}});
  for (const int n : workers_of(outcome)) {
    const auto [curve, point] = best_at(curves, n);
    if (point == nullptr) continue;
    table.add({std::to_string(n), curve->title, n > 1 ? describe(point->road) : "-",
               format_time(point->iteration),
               fmt::format("{} - {}", format_time(point->low), format_time(point->high)),
               rate_text(point->samples_per_second), fmt::format("{:.2f}", point->speedup),
               percent(point->efficiency), n > 1 ? basis_text(*point) : "-"});
  }
  return table.text();
}

std::string curves_table(const ScaleOutcome& outcome,
                         const std::function<std::string(const ScalePoint&)>& cell) {
  std::vector<Table::Column> columns{{"method", Align::kLeft}};
  const std::vector<int> workers = workers_of(outcome);
  for (const int n : workers) columns.push_back({std::to_string(n)});
  Table table(std::move(columns));
  for (const ScaleCurve& curve : outcome.curves) {
    std::vector<std::string> cells{curve.title};
    for (const int n : workers) {
      const auto [found, point] = best_at({&curve}, n);
      cells.push_back(point != nullptr ? cell(*point) : "-");
    }
    table.add(std::move(cells));
  }
  return table.text();
}

/// Letters in the order in which their meanings first appear.
class Legend {
 public:
  char letter(const std::string& meaning) {
    auto found = std::find_if(entries_.begin(), entries_.end(),
                              [&](const Entry& entry) { return entry.meaning == meaning; });
    if (found == entries_.end()) found = entries_.insert(entries_.end(), {meaning, mark(entries_.size()), 0});
    ++found->cells;
    return found->mark;
  }
  std::string text() const {
    std::string out;
    for (const Entry& entry : entries_)
      out += fmt::format("  {}  {} ({} cell{})\n", entry.mark, entry.meaning, entry.cells,
                         entry.cells == 1 ? "" : "s");
    return out;
  }

 private:
  struct Entry {
    std::string meaning;
    char mark = '*';
    int cells = 0;
  };
  static char mark(std::size_t index) {
    constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return index < kLetters.size() ? kLetters[index] : '*';
  }
  std::vector<Entry> entries_;
};

struct Axis {
  std::string name;
  std::vector<std::string> labels;
};

std::vector<Axis> axes_of(const MapOutcome& map) {
  std::vector<Axis> axes{{"workers", {}}, {"latency", {}}, {"bandwidth", {}}};
  for (const int n : map.workers) axes[0].labels.push_back(std::to_string(n));
  for (const double by : map.latency_factors) axes[1].labels.push_back(format_time(map.latency * by));
  for (const double by : map.per_byte_factors)
    axes[2].labels.push_back(format_bandwidth({map.per_byte.value * by}));
  return axes;
}

/// A cell's place on an axis.
std::vector<std::size_t> place_of(const MapOutcome& map, std::size_t cell) {
  const std::size_t columns = map.per_byte_factors.size(), rows = map.latency_factors.size();
  return {cell / (columns * rows), cell / columns % rows, cell % columns};
}

std::string grid(const MapOutcome& map, const std::vector<Axis>& axes, std::size_t down, std::size_t across,
                 const std::function<std::string(const PhaseCell&)>& meaning) {
  Legend legend;
  std::vector<Table::Column> columns{{axes[down].name}};
  for (const std::string& label : axes[across].labels) columns.push_back({label});
  Table table(std::move(columns));
  std::vector<std::vector<std::string>> rows;
  for (const std::string& label : axes[down].labels) {
    rows.emplace_back(axes[across].labels.size() + 1);
    rows.back().front() = label;
  }
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    const auto place = place_of(map, i);
    rows[place[down]][place[across] + 1] = std::string(1, legend.letter(meaning(map.cells[i])));
  }
  for (auto& row : rows) table.add(std::move(row));
  return table.text() + legend.text();
}

std::string title(const WhatIf& about) {
  return fmt::format("{} (batch {}) on cluster {}, {}", about.model, batch_text(about.batch), about.cluster,
                     describe_fit(about.fit));
}

/// What is to be known of the fit, after everything that rests on it.
std::string remarks(const WhatIf& about) {
  const std::string marks = to_text(about.marks);
  return marks.empty() ? marks : "\n" + marks;
}

}  // namespace

std::string scale_report(const ScaleOutcome& outcome, const std::string& method) {
  std::vector<const ScaleCurve*> shown;
  for (const ScaleCurve& curve : outcome.curves) shown.push_back(&curve);
  if (!method.empty()) shown = {&curve_of(outcome, method)};
  return fmt::format("{}; one worker alone takes {}\n\n", title(outcome.about),
                     format_time(outcome.compute)) +
         detail_table(outcome, shown) + "\nspeed-up over one worker:\n" +
         curves_table(outcome, [](const ScalePoint& p) { return fmt::format("{:.4g}", p.speedup); }) +
         "\nefficiency (speed-up / workers):\n" +
         curves_table(outcome,
                      [](const ScalePoint& p) { return fmt::format("{:.0f} %", 100 * p.efficiency); }) +
         remarks(outcome.about);
}

std::string servers_report(const ServersOutcome& outcome) {
  Table table({{"servers"},
               {"best method", Align::kLeft},
               {"road", Align::kLeft},
               {"iteration"},
               {"samples/s"},
               {"marginal gain"}});
  for (std::size_t i = 0; i < outcome.points.size(); ++i) {
    const tuner::ServerPoint& point = outcome.points[i];
    table.add({std::to_string(point.servers), point.title, describe(point.road), format_time(point.iteration),
               rate_text(point.samples_per_second), i == 0 ? "" : signed_percent(point.marginal_gain)});
  }
  return fmt::format("{}, {} workers, {} servers\n\n", title(outcome.about), outcome.about.workers,
                     to_string(outcome.placement)) +
         table.text() + remarks(outcome.about);
}

std::string map_report(const MapOutcome& map) {
  const std::vector<Axis> axes = axes_of(map);
  const std::size_t down = axes[0].labels.size() > 1 || axes[1].labels.size() == 1 ? 0 : 1;
  const std::size_t across = axes[2].labels.size() > 1 || down == 1 ? 2 : 1;
  const auto fixed = 3 - down - across;
  std::string out =
      fmt::format("{}; {} {}; the measured link has {} and {}\n\n", title(map.about), axes[fixed].name,
                  axes[fixed].labels.front(), format_time(map.latency), format_bandwidth(map.per_byte));
  out += fmt::format("fastest method of the literature, {} down, {} across:\n", axes[down].name,
                     axes[across].name);
  out += grid(map, axes, down, across, [](const PhaseCell& cell) { return cell.published; });
  out += "\nroad of the fastest plan of all:\n";
  out += grid(map, axes, down, across, [](const PhaseCell& cell) { return cell.road; });
  const auto [least, most] =
      std::minmax_element(map.cells.begin(), map.cells.end(),
                          [](const PhaseCell& a, const PhaseCell& b) { return a.joint_win < b.joint_win; });
  out += fmt::format("\nthe joint plan is {:.2f} to {:.2f} times as fast as the fastest of the literature\n",
                     least->joint_win, most->joint_win);
  return out + remarks(map.about);
}

}  // namespace commtune::api
