#include "probes/compute/profiler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <vector>

#include "perfmodel/base/error.h"
#include "perfmodel/fit/fit.h"
#include "probes/compute/kernel.h"

namespace commtune::compute {

namespace {

using Clock = std::chrono::steady_clock;

struct Timed {
  Work work;
  Seconds forward{}, backward{};
  double width = 0;  ///< the wider of the two
};

Seconds since(Clock::time_point begin) { return Clock::now() - begin; }

/// Repeats until the median is narrow, the share of the budget is spent or there are enough.
MedianInterval time_repeated(const std::function<void()>& run, const ProfilerOptions& options,
                             Seconds share) {
  for (int i = 0; i < options.warmup; ++i) run();
  const Clock::time_point begin = Clock::now();
  std::vector<double> times;
  MedianInterval interval;
  do {
    const Clock::time_point start = Clock::now();
    run();
    times.push_back(since(start).count());
    interval = median_interval(times);
    const bool enough = static_cast<int>(times.size()) >= options.iterations;
    if (enough && interval.relative_half_width() <= options.width) break;
  } while (since(begin) < share && static_cast<int>(times.size()) < options.max_iterations);
  return interval;
}

Timed time_work(const Work& work, const ProfilerOptions& options, Seconds share) {
  const Kernel kernel = make_kernel(work, options.batch);
  const MedianInterval forward = time_repeated(kernel.forward, options, share / 3);
  const MedianInterval backward = time_repeated(kernel.backward, options, 2 * share / 3);
  return {work, Seconds{forward.median}, Seconds{backward.median},
          std::max(forward.relative_half_width(), backward.relative_half_width())};
}

/// Each shape once, in the order in which it appears.
std::vector<Work> distinct_works(const Architecture& architecture) {
  std::vector<Work> works;
  for (const ComputeLayer& layer : architecture.layers) {
    for (const Work& work : layer.work) {
      if (std::find(works.begin(), works.end(), work) == works.end()) works.push_back(work);
    }
  }
  return works;
}

/// What a shape may cost beside the others: its products, and something for being looked at.
double weight_of(const Work& work) { return macs(work) + 1e7; }

/// What the shapes left of the budget goes to those whose times are still wide.
void narrow(std::vector<Timed>& timed, const ProfilerOptions& options, Clock::time_point begin) {
  const auto is_wide = [&](const Timed& one) { return one.width > options.width; };
  auto wide = std::count_if(timed.begin(), timed.end(), is_wide);
  for (Timed& one : timed) {
    if (!is_wide(one)) continue;
    const Seconds left = options.budget - since(begin);
    if (left <= Seconds{0}) return;
    const Timed again = time_work(one.work, options, left / static_cast<double>(wide--));
    if (again.width < one.width) one = again;
  }
}

std::vector<Timed> time_all(const Architecture& architecture, const ProfilerOptions& options,
                            const std::function<bool(const ProfilerProgress&)>& progress) {
  const Clock::time_point begin = Clock::now();
  const std::vector<Work> works = distinct_works(architecture);
  double weight = 0;
  for (const Work& work : works) weight += weight_of(work);
  std::vector<Timed> timed;
  for (const Work& work : works) {
    const Seconds left = std::max(options.budget - since(begin), Seconds{0});
    const double done = static_cast<double>(timed.size()) / static_cast<double>(works.size());
    if (progress && !progress({describe(work), done, left})) {
      throw Error(ErrorCode::kInterrupted, "profile interrupted after " + std::to_string(timed.size()) +
                                               " of " + std::to_string(works.size()) +
                                               " shapes: nothing is kept of it");
    }
    timed.push_back(time_work(work, options, left * weight_of(work) / weight));
    weight -= weight_of(work);
  }
  narrow(timed, options, begin);
  return timed;
}

std::string percent(double ratio) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << 100 * ratio << " %";
  return text.str();
}

ProfileOrigin origin_of(const Architecture& architecture, const std::vector<Timed>& timed,
                        const ProfilerOptions& options) {
  double worst = 0;
  std::size_t wide = 0;
  for (const Timed& one : timed) {
    worst = std::max(worst, one.width);
    wide += one.width > options.width ? 1 : 0;
  }
  ProfileOrigin origin;
  origin.how = "measured";
  origin.device =
      options.device + (options.device.empty() ? "" : ", ") + std::to_string(threads()) + " threads, float32";
  origin.source = library_version() + ", every layer alone; shapes: " + architecture.source;
  origin.note = std::to_string(timed.size()) + " shapes, half width of the median's 95 % interval at most " +
                percent(worst);
  if (wide > 0)
    origin.note += " (" + std::to_string(wide) + " wider than " + percent(options.width) +
                   ": a larger budget narrows them)";
  origin.note +=
      ". Each primitive works in the layout that it likes best: conversions between layers, dropout and the "
      "optimizer's step (update_seconds is 0) are not in these times. What has no parameters is added to the "
      "layer before it.";
  return origin;
}

const Timed& find(const std::vector<Timed>& timed, const Work& work) {
  return *std::find_if(timed.begin(), timed.end(), [&](const Timed& one) { return one.work == work; });
}

void check_names(const Architecture& architecture, const Profile& tensors) {
  const auto same = [](const ComputeLayer& a, const Layer& b) { return a.name == b.name; };
  if (std::equal(architecture.layers.begin(), architecture.layers.end(), tensors.layers.begin(),
                 tensors.layers.end(), same)) {
    return;
  }
  throw Error(ErrorCode::kBadInput,
              "model " + architecture.model + ": its shapes and its tensors have other layers");
}

void require(bool holds, const std::string& field, const std::string& value, const std::string& rule) {
  if (!holds) throw Error(ErrorCode::kBadInput, field + " = " + value + ": must be " + rule);
}

}  // namespace

void ProfilerOptions::check() const {
  // Samples and threads: beyond these a number is a slip of the finger.
  constexpr int kMostBatch = 1 << 20, kMostThreads = 4096;
  require(batch >= 0 && batch <= kMostBatch, "batch", std::to_string(batch), "1 to 1048576");
  require(threads >= 0 && threads <= kMostThreads, "threads", std::to_string(threads), "1 to 4096");
  require(std::isfinite(budget.count()) && budget.count() > 0, "budget",
          std::to_string(budget.count()) + " s", "positive");
  require(std::isfinite(width) && width > 0 && width < 1, "width", std::to_string(width), "between 0 and 1");
  require(warmup >= 0, "warm-up", std::to_string(warmup), "at least 0");
  require(iterations >= 1, "iterations", std::to_string(iterations), "at least 1");
  require(max_iterations >= iterations, "most iterations", std::to_string(max_iterations),
          "at least the iterations, " + std::to_string(iterations));
}

Profile profile_layers(const Architecture& architecture, const Profile& tensors,
                       const ProfilerOptions& options,
                       const std::function<bool(const ProfilerProgress&)>& progress) {
  options.check();
  check_names(architecture, tensors);
  ProfilerOptions chosen = options;
  if (chosen.batch == 0) chosen.batch = tensors.batch;
  if (chosen.threads > 0) set_threads(chosen.threads);
  const std::vector<Timed> timed = time_all(architecture, chosen, progress);

  Profile profile = tensors;
  profile.batch = chosen.batch;
  profile.type = DataType::kFloat32;
  profile.origin = origin_of(architecture, timed, chosen);
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    Layer& layer = profile.layers[i];
    layer.forward = layer.backward = layer.update = Seconds{0};
    for (const Work& work : architecture.layers[i].work) {
      const Timed& one = find(timed, work);
      layer.forward += one.forward;
      layer.backward += one.backward;
    }
  }
  return profile;
}

}  // namespace commtune::compute
