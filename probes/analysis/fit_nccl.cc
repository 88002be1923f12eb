#include "probes/analysis/fit_nccl.h"

#include <cmath>

#include "perfmodel/base/normal.h"
#include "probes/analysis/enough_sizes.h"
#include "probes/analysis/held_out.h"
#include "probes/analysis/merged_samples.h"

namespace commtune::probes {

namespace {

/// Relative variance of the sizes' medians, by their intervals.
double variance_of_medians(std::span<const Sample> by_size) {
  double sum = 0;
  for (const Sample& sample : by_size) {
    const double deviation = sample.half_width / sample.time / kNormal95;
    sum += deviation * deviation;
  }
  return sum / static_cast<double>(by_size.size());
}

struct Fitted {
  NcclFit fit;
  SquaredErrors between;
  double of_medians = 0;  ///< relative variance
};

}  // namespace

std::vector<NcclFit> fit_nccl(std::span<const OperationSamples> tunings, const FitOptions& options) {
  FitOptions quick = options;
  quick.bootstrap = 0;
  std::vector<Fitted> all;
  SquaredErrors common;
  for (const auto& [quantity, alone, streamed] : tunings) {
    const std::vector<Sample> by_size = merged_by_size(alone);
    if (by_size.empty() || !are_enough(by_size.size(), by_size.front().size, by_size.back().size)) continue;
    const SquaredErrors between =
        between_sizes(by_size, [&](std::span<const Sample> rest) { return fit_curve(rest, quick).curve; });
    common.add(between);
    all.push_back({{quantity.operation, quantity.nccl, quantity.workers, fit_curve(by_size, options)},
                   between,
                   variance_of_medians(by_size)});
  }
  std::vector<NcclFit> fits;
  fits.reserve(all.size());
  for (auto& [fit, between, of_medians] : all) {
    fit.alone.deviation.startup = fit.alone.deviation.rate =
        std::hypot(shrunk(between, common), std::sqrt(of_medians));
    fits.push_back(std::move(fit));
  }
  return fits;
}

}  // namespace commtune::probes
