#include "probes/sampling/step_survey.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "perfmodel/base/normal.h"
#include "perfmodel/fit/fit.h"
#include "probes/load/compute_step.h"

namespace commtune::probes {

namespace {

// On each rank: enough for a standard deviation within 16 %.
constexpr int kSteps = 20;
// What moves meanwhile: as much as a fused message of a plan, and enough of them to keep a link busy.
constexpr Bytes kBusySize{256 << 10};
constexpr int kBusyInFlight = 4;
// Streams alone and beside steps, in turn: their medians' difference is one of some per cent. At most as
// often bytes move until enough steps were beside them.
constexpr int kTurns = 5;

bool knows(std::span<const ProbeSample> known, const Quantity& quantity) {
  return std::ranges::any_of(known, [&](const ProbeSample& sample) { return sample.quantity == quantity; });
}

Quantity quantity_of(Subject subject, int in_flight) {
  Quantity quantity;
  quantity.subject = subject;
  quantity.in_flight = in_flight;
  return quantity;
}

ProbeSample sample_of(const Quantity& quantity, Bytes size, const MedianInterval& interval,
                      std::size_t count) {
  ProbeSample sample;
  sample.quantity = quantity;
  sample.sample = {size, Seconds{interval.median}, Seconds{(interval.high - interval.low) / 2},
                   static_cast<int>(count)};
  return sample;
}

/// Standard deviation of all values around their mean, with the half width of its 95 % interval (normal
/// values).
MedianInterval deviation(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double square = 0;
  for (const double value : values) square += (value - mean) * (value - mean);
  const double deviation =
      std::sqrt(square / static_cast<double>(std::max<std::size_t>(values.size() - 1, 1)));
  const double half = kNormal95 * deviation / std::sqrt(2.0 * static_cast<double>(values.size()));
  return {deviation, std::max(deviation - half, 0.0), deviation + half};
}

std::vector<double> of_all_ranks(const std::vector<std::vector<double>>& by_rank) {
  std::vector<double> all;
  for (const std::vector<double>& of_rank : by_rank) all.insert(all.end(), of_rank.begin(), of_rank.end());
  return all;
}

class SlowDowns {
 public:
  SlowDowns(Measurement& measurement, StepKind steps, const Road& road, int workers, SecondsPerByte beta,
            const Found& found)
      : measurement_(measurement), steps_(steps), message_(2 * (beta * kBusySize)), found_(found) {
    traffic_.road = road;
    traffic_.workers = workers;
    traffic_.size = kBusySize;
    traffic_.in_flight = kBusyInFlight;
  }

  std::vector<std::string> measure(std::span<const ProbeSample> known) {
    const Quantity busy = quantity_of(Subject::kStep, kBusyInFlight);
    const Quantity alone = traffic_.quantity(false), beside = traffic_.quantity(true);
    const bool wants_steps = !knows(known, busy);
    const bool wants_traffic = steps_ == StepKind::kGpu && !(knows(known, alone) && knows(known, beside));
    if (!wants_steps && !wants_traffic) return {};
    if (steps_ == StepKind::kGpu) time_a_message();
    traffic_.messages = std::clamp(static_cast<int>(kSteps * Seconds{kStepLength} / message_), kBusyInFlight,
                                   static_cast<int>(kMostEnds));
    traffic_.expected = traffic_.messages * message_;
    if (wants_steps) measure_steps(busy);
    if (wants_traffic) measure_traffic(alone, beside);
    return std::move(notes_);
  }

 private:
  bool fits(int streams) const {
    const auto traffic = measurement_.traffic_left();
    return !traffic || static_cast<std::uint64_t>(streams) * traffic_.sends().count <= traffic->count;
  }

  void time_a_message() {
    traffic_.messages = 2 * kBusyInFlight;
    traffic_.expected = traffic_.messages * message_;
    if (!fits(2)) return;
    measurement_.message_seconds(traffic_, std::nullopt);  // warms up
    message_ = Seconds{measurement_.message_seconds(traffic_, std::nullopt)};
  }

  void measure_steps(const Quantity& busy) {
    if (!fits(1)) {
      notes_.emplace_back("interference was not measured: too little traffic is allowed");
      return;
    }
    // Slowed steps are fewer while the same bytes move, and so they are where something made a message late.
    std::vector<double> all;
    std::size_t ranks = 1;
    for (int turn = 0; turn < kTurns && all.size() < ranks * kSteps / 2 && fits(1); ++turn) {
      const std::vector<std::vector<double>> by_rank = measurement_.busy_steps(steps_, traffic_);
      ranks = by_rank.size();
      std::ranges::copy(of_all_ranks(by_rank), std::back_inserter(all));
    }
    if (!all.empty()) found_(sample_of(busy, Bytes{0}, median_interval(all), all.size()));
  }

  void measure_traffic(const Quantity& alone, const Quantity& beside) {
    if (!fits(2 * kTurns)) {
      notes_.emplace_back(
          "by how much compute slows traffic was not measured: too little traffic is allowed");
      return;
    }
    std::vector<double> without, with;
    for (int turn = 0; turn < kTurns && !measurement_.stop_requested(); ++turn) {
      without.push_back(measurement_.message_seconds(traffic_, std::nullopt));
      with.push_back(measurement_.message_seconds(traffic_, steps_));
    }
    if (with.empty()) return;
    found_(sample_of(alone, kBusySize, median_interval(without), without.size()));
    found_(sample_of(beside, kBusySize, median_interval(with), with.size()));
  }

  Measurement& measurement_;
  const StepKind steps_;
  Seconds message_;  // what one takes
  const Found& found_;
  Traffic traffic_;
  std::vector<std::string> notes_;
};

}  // namespace

StepKind steps_of(const ProbeOptions& options) { return options.sm_share ? StepKind::kGpu : options.steps; }

void survey_jitter(Measurement& measurement, StepKind steps, std::span<const ProbeSample> known,
                   const Found& found) {
  const Quantity jitter = quantity_of(Subject::kJitter, 1);
  if (knows(known, jitter)) return;
  measurement.show("jitter");
  std::vector<double> all = of_all_ranks(measurement.steps(steps, kSteps));
  const std::size_t count = all.size();
  found(sample_of(jitter, Bytes{0}, deviation(all), count));
  found(sample_of(quantity_of(Subject::kStep, 0), Bytes{0}, median_interval(all), count));
}

std::vector<std::string> survey_slow_downs(Measurement& measurement, StepKind steps, const Road& road,
                                           int workers, SecondsPerByte beta,
                                           std::span<const ProbeSample> known, const Found& found) {
  return SlowDowns(measurement, steps, road, workers, beta, found).measure(known);
}

}  // namespace commtune::probes
