#include "probes/sampling/target_state.h"

#include <algorithm>
#include <cmath>

#include "perfmodel/fit/fit.h"
#include "probes/analysis/enough_sizes.h"
#include "probes/sampling/stream_shape.h"

namespace commtune::probes {

namespace {

// Below this size a repetition says more about start-up than about bytes: at 1 Gb/s its bytes take 0.5 ms.
constexpr Bytes kBulk = 64_KiB;
// Repetitions from which a median's residual tells something: of five, two may be disturbed.
constexpr int kTrusted = 5;

StreamLimits limits_of(const Quantity& quantity) {
  if (quantity.subject != Subject::kOperation) return {};
  StreamLimits limits = kStreamedOperations;
  limits.servers = whole_message_servers(quantity.road);
  return limits;
}

}  // namespace

bool TargetState::has_enough_sizes() const {
  return !points.empty() && are_enough(points.size(), points.begin()->first, points.rbegin()->first);
}

bool TargetState::spans_with(Bytes size) const {
  if (points.empty()) return true;
  return are_enough(kEnoughSizes, std::min(size, points.begin()->first),
                    std::max(size, points.rbegin()->first));
}

double TargetState::message_time(Bytes size) const {
  const auto bytes = static_cast<double>(size.count);
  if (points.empty()) {
    return target.startup.count() + target.beta.value * bytes;
  }
  const auto above = points.lower_bound(size);
  if (above != points.end() && above->first == size) return above->second.times.median();
  if (above == points.begin()) {
    return std::min(above->second.times.median(), target.startup.count() + target.beta.value * bytes);
  }
  const auto below = std::prev(above);
  const auto from = static_cast<double>(below->first.count);
  if (above != points.end()) {
    const auto to = static_cast<double>(above->first.count);
    return std::lerp(below->second.times.median(), above->second.times.median(),
                     (bytes - from) / (to - from));
  }
  double slope = target.beta.value;
  if (below->first >= kBulk && below != points.begin()) {
    const auto before = std::prev(below);
    const double own = (below->second.times.median() - before->second.times.median()) /
                       (from - static_cast<double>(before->first.count));
    slope = std::max(own, slope);  // start-up may still hide what bytes take
  }
  return below->second.times.median() + slope * (bytes - from);
}

double TargetState::repetition_time(Bytes size, Seconds overhead) const {
  if (!streams()) return message_time(size) + overhead.count();
  // The first messages of a stream also show their latency.
  return (stream_messages(size) + 2) * message_time(size) + 2 * overhead.count();
}

double TargetState::back_to_back_time(Bytes size) const {
  return message_time(size) * (target.quantity.subject == Subject::kMessage ? 2 : 1);
}

int TargetState::at_once(Bytes size) const {
  const auto known = points.find(size);
  if (known != points.end()) return known->second.at_once;
  if (const auto more = deeper.find(size); more != deeper.end()) return more->second;
  return streamed_at_once(size, Seconds{message_time(size)}, target.latency, limits_of(target.quantity));
}

int TargetState::stream_messages(Bytes size) const {
  const int together = at_once(size);
  return together + streamed_in_all(together, Seconds{message_time(size)});
}

bool TargetState::warms_up(Bytes size) const { return !visited || size >= kBulk || streams(); }

SizeTimes TargetState::record(Bytes size, int under_way, std::span<const double> seconds, Seconds left) {
  Point& point = points[size];
  visited = true;
  point.at_once = under_way;
  point.times.add(seconds, left);
  SizeTimes times = point.times;
  ask_for_deeper(size);
  refit();
  return times;
}

void TargetState::know(Bytes size, Point known) {
  points[size] = std::move(known);
  ask_for_deeper(size);
}

/// Forgets a stream of operations that was too short of them. Of a link no message waits for another one's
/// arrival.
void TargetState::ask_for_deeper(Bytes size) {
  if (!streams() || target.quantity.subject != Subject::kOperation) return;
  const Point& point = points.at(size);
  const auto more = streamed_deeper(size, point.at_once, Seconds{point.times.median()}, target.latency,
                                    limits_of(target.quantity));
  if (!more) return;
  deeper[size] = *more;
  points.erase(size);
}

void TargetState::refit() {
  residual.clear();
  unexplained.clear();
  if (points.size() < 4) {
    return;
  }
  std::vector<Sample> samples;
  for (const auto& [size, point] : points) samples.push_back(point.times.sample(size));
  FitOptions options;
  options.bootstrap = 0;
  const Fit fit = fit_curve(samples, options);
  for (const Sample& sample : samples) {
    const double miss = std::abs(fit.curve(sample.size).count() - sample.time.count()) / sample.time.count();
    unexplained[sample.size] = miss;
    // What the repetitions' own scatter explains asks for repetitions, not for new sizes.
    if (sample.repetitions < kTrusted) continue;
    residual[sample.size] = std::max(0.0, miss - 2 * (sample.half_width / sample.time));
  }
}

}  // namespace commtune::probes
