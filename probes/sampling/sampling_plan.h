#pragma once
// What to measure next: the adaptive control of a probe, as a deterministic value without clocks or sockets.
//
// Each target is a cost as a function of size. The sampling plan repeatedly takes the step with the largest
// expected gain per second: a new size (far from measured ones, beyond the measured range, or where the fit
// so far explains its neighbours badly), or more repetitions where the median's interval is still wide, at
// another moment, since a host's state lasts longer than a visit. So whatever the budget, what has been
// measured when it is spent was worth the most.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perfmodel/base/units.h"
#include "probes/sample.h"
#include "probes/sampling/advisor.h"
#include "probes/sampling/sampling_gains.h"
#include "probes/sampling/target_state.h"

namespace commtune::probes {

/// A warm-up is no larger: enough to open a connection's congestion window.
inline constexpr Bytes kWarmUpBytes{256 << 10};

struct SamplingPlanOptions {
  Bytes first{4}, last{64 << 20};
  double factor = 4;
  int iterations = 3, max_iterations = 60;
  double width = 0.02;
  Seconds budget{8};       ///< of the whole probe: a single step takes a small part of it
  Seconds overhead{1e-3};  ///< of a repetition, beside what is timed
  Bytes chunk;             ///< longest transfer of a pipelined road; 0: unknown
  SamplingGains gains;
};

/// One visit: a size of a target, measured some times.
struct Visit {
  std::size_t target = 0;
  Quantity quantity;  ///< with the number in flight filled in
  Bytes size;
  int messages = 1;  ///< of one repetition
  int repetitions = 1;
  bool first = true;            ///< nothing of this target's size was measured in this session: warm up
  Seconds expected{};           ///< of all repetitions together
  Bytes sends;                  ///< the busiest rank sends so much in all
  bool of_first_sizes = false;  ///< the target's fit may not rest on its sizes yet (enough_sizes.h)
};

class SamplingPlan {
 public:
  /// already  samples that count as measured, whatever session they came from
  SamplingPlan(const std::vector<Target>& targets, const SamplingPlanOptions& options,
               std::span<const ProbeSample> already);

  /// More targets, which get their first sizes next; numbered after those that there are.
  void add(const std::vector<Target>& targets, std::span<const ProbeSample> already);
  bool has_target(const RoadNeed& need) const;

  /// From now on a part of the roads' weight (SamplingGains::needed_share) goes to roads by the value of what
  /// plans need of them, and only to sizes near those of their messages. Links, memory and first sizes count
  /// as before. Needs without any value, or of roads that are no targets, change nothing.
  void weigh(std::span<const RoadNeed> needs);

  /// The most valuable visit that fits into the time and the traffic that are left; nullopt if none does.
  std::optional<Visit> next(Seconds left, std::optional<Bytes> traffic_left);

  /// Times of one visit's repetitions, at least one. Returns the sample of this size so far.
  ProbeSample record(const Visit& visit, std::span<const double> seconds);

  /// Nothing is left to measure, even without limits.
  bool complete() const;
  /// What would be measured with more budget, most valuable first, at most `most` lines.
  std::vector<std::string> missing(std::size_t most) const;

  /// Expected duration of one repetition.
  Seconds expected(std::size_t target, Bytes size) const;

 private:
  const SamplingGains& gains() const { return options_.gains; }

  struct Step {
    std::size_t state = 0;
    Bytes size;
    int repetitions = 0;
    double gain = 0;
    double seconds = 0;
    bool of_first_sizes = false;  ///< comes before all that are not
  };

  int turn(const Step& step) const;
  double repetition_time(const TargetState& state, Bytes size) const;
  bool is_unpipelined(const TargetState& state, Bytes size) const;
  double visit_time(const TargetState& state, Bytes size, int repetitions) const;
  int first_repetitions(const TargetState& state, Bytes size) const;
  double weight(const TargetState& state, Bytes size) const;
  bool bends_at_largest(const TargetState& state) const;
  double widening_gain(const TargetState& state, Bytes size) const;
  Step widening(std::size_t index, Bytes size) const;
  std::optional<Step> narrowing(std::size_t index, Bytes size, const TargetState::Point& point) const;
  void learn_between_visits();
  double width(const TargetState& state, Bytes size, const TargetState::Point& point) const;
  bool rested(const Step& step, Seconds left) const;
  bool is_short_of_time() const;
  bool shows_bytes_next(const TargetState& state, bool short_of_time) const;
  void prefer_largest(std::span<Step> by_size) const;
  double longest_first_visit() const;
  void mark_first_sizes(const TargetState& state, std::span<Step> by_size) const;
  std::vector<Step> steps() const;
  Bytes traffic(const Step& step) const;

  SamplingPlanOptions options_;
  std::vector<TargetState> states_;
  std::map<int, double> between_visits_;  ///< by class of time: how far visits of a size are apart
  std::optional<Seconds> first_left_;     ///< of the budget, when next() was asked first
  Seconds left_{};                        ///< when it was asked last
  std::size_t visits_ = 0;                ///< that were recorded
};

}  // namespace commtune::probes
