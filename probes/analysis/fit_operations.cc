#include "probes/analysis/fit_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/cost/road_formula.h"
#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/fit/curve_ops.h"
#include "probes/analysis/enough_sizes.h"
#include "probes/analysis/formula_shape.h"
#include "probes/analysis/held_out.h"
#include "probes/analysis/merged_samples.h"

namespace commtune::probes {

namespace {

// A part of what handing over a message takes that its bytes do not hide, where the samples do not tell:
// while an operation's bytes leave, hosts do other work.
constexpr double kOtherHosts = 0;

// Relative standard deviation of what formulas say where not one road can be held out to find out. With less,
// a road that nobody measured would win over measured ones for certain; with more, ranges would rule out
// nothing.
constexpr double kUnchecked = 0.2;

// Ways in which what a size takes longer than its formula may go on beyond the largest one
// (FormulaShape::excess_grows): as a time, as a part, and between.
constexpr std::array kGrowths{0.0, 0.5, 1.0};
constexpr std::size_t kUntold = 1;  // the way where no operation tells
/// By way.
using GrowthErrors = std::array<SquaredErrors, kGrowths.size()>;
// Of the formula's costs of the largest size and the one that it is told from, as of sizes of which one is
// twice the other: with less between them all ways say the same.
constexpr double kTellsGrowth = 1.5;

bool is_spanned(std::span<const Sample> by_size) {
  return !by_size.empty() && are_enough(by_size.size(), by_size.front().size, by_size.back().size);
}

/// By operation.
/// stages  a Formula or a RoadCost
template <typename Stages>
const StageCost& stage_of(const Stages& stages, Operation operation) {
  switch (operation) {
    case Operation::kReduceScatter:
    case Operation::kPush:
      return stages.reduce;
    case Operation::kAllGather:
    case Operation::kPull:
      return stages.distribute;
    case Operation::kAllReduce:
    case Operation::kPushPull:
      break;
  }
  return stages.both;
}

/// What the links that were fitted say of an operation; nullopt where they were not measured.
std::optional<Formula> formula_for(const Quantity& quantity, const Cluster& cluster) {
  try {
    return formula_of(quantity.road, cluster, quantity.workers);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kBadInput) throw;
    return std::nullopt;
  }
}

/// What links and related roads say of an operation's messages alone; nullopt where they were not measured.
std::optional<Curve> carried_alone(const Quantity& quantity, const Cluster& fitted) {
  try {
    return stage_of(road_cost(quantity.road, fitted, quantity.workers), quantity.operation).alone;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kBadInput) throw;
    return std::nullopt;
  }
}

/// An operation on its way to its fit.
class Operating {
 public:
  Operating(const OperationSamples& samples, const Cluster& links, const FitOptions& options)
      : quantity_(samples.quantity),
        alone_(merged_by_size(samples.alone)),
        streamed_(merged_by_size(samples.streamed)),
        formula_(formula_for(quantity_, links)),
        options_(options),
        fit_{quantity_.road, quantity_.operation, quantity_.workers, {}, {}} {}

  const OperationFit& fit() const { return fit_; }
  /// What the samples of its own say of the doubt between them.
  const SquaredErrors& alone_errors() const { return alone_errors_; }
  const SquaredErrors& streamed_errors() const { return streamed_errors_; }

  /// How far each way is off for the largest sizes, told from all others.
  void hold_out_largest() {
    if (!formula_) return;
    const StageCost& stage = stage_of(*formula_, quantity_.operation);
    alone_growth_ =
        hold_out_largest(alone_, stage.alone, [&](std::span<const Sample>) { return stage.alone; });
    streamed_growth_ = hold_out_largest(streamed_, stage.occupancy, [&](std::span<const Sample> rest) {
      return stream_shape(rest, stage.occupancy, kOtherHosts);
    });
  }
  void add_growth_errors(GrowthErrors& all) const {
    for (std::size_t way = 0; way < kGrowths.size(); ++way) {
      all[way].add(alone_growth_[way]);
      all[way].add(streamed_growth_[way]);
    }
  }

  /// What needs nothing but its own samples and the links.
  /// growth  how far each way is off for all operations
  void fit_own(const GrowthErrors& growth) {
    alone_grows_ = likeliest(alone_growth_, growth);
    streamed_grows_ = likeliest(streamed_growth_, growth);
    if (is_spanned(alone_)) fit_.alone = fit_alone(alone_, options_);
    if (is_spanned(streamed_)) fit_.streamed = fit_stream(streamed_, options_);
    FitOptions quick = options_;
    quick.bootstrap = 0;
    if (!fit_.alone.curve.empty()) {
      alone_errors_ =
          between_sizes(alone_, [&](std::span<const Sample> rest) { return fit_alone(rest, quick).curve; });
    }
    if (!fit_.streamed.curve.empty()) {
      streamed_errors_ = between_sizes(
          streamed_, [&](std::span<const Sample> rest) { return fit_stream(rest, quick).curve; });
    }
  }

  /// Messages alone of too few sizes. Of a single size nothing is made: then the whole road is the formulas'.
  /// fitted  has what other roads were fitted to
  void carry_alone(const Cluster& fitted) {
    if (alone_.size() < 2 || !fit_.alone.curve.empty()) return;
    const std::optional<Curve> carried = carried_alone(quantity_, fitted);
    if (formula_ && carried) fit_.alone = moved_to_samples(alone_, alone_with(*carried));
    if (fit_.alone.curve.empty()) fit_.alone = fit_alone(alone_, options_);
  }

  /// A stream of too few sizes. fitted  has what other roads were fitted to
  void carry_stream(const Cluster& fitted) {
    if (streamed_.empty() || !fit_.streamed.curve.empty()) return;
    const std::optional<Formula> carried = carried_streams(quantity_.road, fitted, quantity_.workers);
    // Two decades apart two sizes show start-up and bytes, and no other road's stream shows them better.
    const bool both_shown = are_enough(kEnoughSizes, streamed_.front().size, streamed_.back().size);
    if (formula_ && (carried || !both_shown)) {
      const Formula& formula = carried ? *carried : *formula_;
      fit_.streamed =
          moved_to_samples(streamed_, stream_with(stage_of(formula, quantity_.operation).occupancy));
    }
    if (fit_.streamed.curve.empty() && streamed_.size() > 1) {
      fit_.streamed = fit_stream(streamed_, options_);
    }
  }

  /// common  of all fits' errors between sizes
  void doubt(const SquaredErrors& common, const Deviation& formula) {
    fit_.alone.deviation = deviation_of(fit_.alone, alone_, shrunk(alone_errors_, common), formula);
    fit_.streamed.deviation =
        deviation_of(fit_.streamed, streamed_, shrunk(streamed_errors_, common), formula);
  }

 private:
  template <typename ShapeOf>
  GrowthErrors hold_out_largest(std::span<const Sample> by_size, const Curve& formula,
                                const ShapeOf& shape_of) const {
    GrowthErrors errors;
    if (!is_spanned(by_size)) return errors;
    const Sample& largest = by_size.back();
    const std::span<const Sample> rest = by_size.first(by_size.size() - 1);
    if (formula(largest.size) < formula(rest.back().size) * kTellsGrowth) return errors;
    FormulaShape shape{shape_of(rest), formula_->smallest, formula_->largest};
    for (std::size_t way = 0; way < kGrowths.size(); ++way) {
      shape.excess_grows = kGrowths[way];
      if (const std::optional<Seconds> told = beyond_largest(rest, shape, largest.size))
        errors[way].add(std::log(largest.time / *told));
    }
    return errors;
  }

  /// The way that tells the largest size best, by its own error and all operations' (shrunk()).
  static double likeliest(const GrowthErrors& own, const GrowthErrors& all) {
    std::size_t best = kUntold;
    for (std::size_t way = 0; way < kGrowths.size(); ++way) {
      if (shrunk(own[way], all[way]) < shrunk(own[best], all[best])) best = way;
    }
    return kGrowths[best];
  }

  FormulaShape alone_with(Curve curve) const {
    return {std::move(curve), formula_->smallest, formula_->largest, alone_grows_};
  }

  FormulaShape stream_with(Curve curve) const {
    return {std::move(curve), formula_->smallest, formula_->largest, streamed_grows_, fit_.alone.curve};
  }

  Fit fit_alone(std::span<const Sample> by_size, const FitOptions& options) const {
    if (!formula_) return fit_curve(by_size, options);
    const StageCost& stage = stage_of(*formula_, quantity_.operation);
    return fit_with_shape(by_size, alone_with(stage.alone), options);
  }

  Fit fit_stream(std::span<const Sample> by_size, const FitOptions& options) const {
    if (!formula_) return fit_curve(by_size, options);
    const Curve& bytes = stage_of(*formula_, quantity_.operation).occupancy;
    return fit_with_shape(by_size, stream_with(stream_shape(by_size, bytes, kOtherHosts)), options);
  }

  /// A curve of this shape, as much longer as the samples are on average; empty where the shape costs
  /// nothing.
  Fit moved_to_samples(std::span<const Sample> by_size, FormulaShape shape) const {
    double off = 0;  // mean logarithm
    for (const Sample& sample : by_size) {
      const Seconds expected = shape.curve(sample.size);
      if (expected <= Seconds{0}) return {};
      off += std::log(sample.time / expected) / static_cast<double>(by_size.size());
    }
    shape.curve = times(shape.curve, std::exp(off));
    const std::vector<Sample> borrowed = borrowed_samples(by_size, shape);
    return borrowed.empty() ? Fit{} : fit_with_borrowed(by_size, borrowed, options_);
  }

  /// What sizes that are hardly anything but a start-up, or but bytes, did not show is the formula's.
  static Deviation deviation_of(const Fit& fit, std::span<const Sample> by_size, double between,
                                const Deviation& formula) {
    if (fit.curve.empty()) return {};
    const bool shows_startup = startup_share(fit.curve, by_size.front().size) >= kMostly;
    const bool shows_rate = 1 - startup_share(fit.curve, by_size.back().size) >= kMostly;
    return {shows_startup ? between : std::max(between, formula.startup),
            shows_rate ? between : std::max(between, formula.rate)};
  }

  Quantity quantity_;
  std::vector<Sample> alone_, streamed_;  ///< by size
  std::optional<Formula> formula_;
  FitOptions options_;
  OperationFit fit_;
  GrowthErrors alone_growth_, streamed_growth_;
  double alone_grows_ = kGrowths[kUntold], streamed_grows_ = kGrowths[kUntold];
  SquaredErrors alone_errors_, streamed_errors_;
};

}  // namespace

FittedOperations fit_operations(std::span<const OperationSamples> operations, const Cluster& links,
                                const FitOptions& options) {
  std::vector<Operating> all;
  all.reserve(operations.size());
  SquaredErrors common;
  Cluster fitted = links;
  for (const OperationSamples& samples : operations) all.emplace_back(samples, links, options);
  GrowthErrors growth;
  for (Operating& operating : all) {
    operating.hold_out_largest();
    operating.add_growth_errors(growth);
  }
  for (Operating& operating : all) {
    operating.fit_own(growth);
    common.add(operating.alone_errors());
    common.add(operating.streamed_errors());
    if (!operating.fit().alone.curve.empty()) fitted.operations.push_back(operating.fit());
  }
  const CostErrors formulas = roads_held_out(fitted);
  const auto checked = [](const SquaredErrors& errors) {
    return errors.count > 0 ? errors.deviation() : kUnchecked;
  };
  FittedOperations result{{}, {checked(formulas.startup), checked(formulas.rate)}};
  for (Operating& operating : all) {
    operating.carry_alone(fitted);
    operating.carry_stream(fitted);
    operating.doubt(common, result.formula_deviation);
    if (!operating.fit().alone.curve.empty()) result.fits.push_back(operating.fit());
  }
  return result;
}

}  // namespace commtune::probes
