#include "perfmodel/doubtful_fits.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <utility>

namespace commtune {

namespace {

constexpr double kMostMedian = 0.10, kMostP90 = 0.30, kLeastExplained = 0.9;

bool is_doubtful(const Fit& fit) {
  const FitQuality& quality = fit.quality;
  // One size has nothing to explain: its shape is a formula's.
  const bool unexplained = quality.samples > 1 && quality.r_squared < kLeastExplained;
  return !fit.curve.empty() &&
         (quality.median_relative > kMostMedian || quality.p90_relative > kMostP90 || unexplained);
}

std::string text_of(const std::string& what, const FitQuality& quality) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << what << ": median residual " << 100 * quality.median_relative
       << " %, p90 " << 100 * quality.p90_relative << " %, R² " << std::setprecision(3) << quality.r_squared;
  return text.str();
}

class List {
 public:
  void look_at(const std::string& what, const Fit& fit) {
    if (is_doubtful(fit)) entries_.emplace_back(fit.quality.p90_relative, text_of(what, fit.quality));
  }

  std::vector<std::string> worst_first() {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> lines;
    for (auto& [p90, text] : entries_) lines.push_back(std::move(text));
    return lines;
  }

 private:
  std::vector<std::pair<double, std::string>> entries_;
};

}  // namespace

std::vector<std::string> doubtful_fits(const Cluster& cluster) {
  List list;
  for (const auto& [kind, link] : cluster.links) {
    const std::string what = "link " + to_string(kind);
    list.look_at(what + ", alone", link.alone);
    list.look_at(what + ", streamed", link.streamed);
    list.look_at(what + ", duplex", link.duplex);
  }
  for (const OperationFit& fit : cluster.operations) {
    const std::string what = to_string(fit.operation) + ", " + describe(fit.road) + ", " +
                             std::to_string(fit.workers) + " workers";
    list.look_at(what + ", alone", fit.alone);
    list.look_at(what + ", streamed", fit.streamed);
  }
  return list.worst_first();
}

}  // namespace commtune
