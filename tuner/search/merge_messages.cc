#include "tuner/search/merge_messages.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace commtune::tuner {

namespace {

class Judge {
 public:
  Judge(const GradientStream& stream, Simulator& simulator, std::span<const Allowed> allowed)
      : stream_(stream), simulator_(simulator), allowed_(allowed) {
    for (const Allowed& each : allowed) roads_.emplace_back(each.cost);
  }

  bool passes(const StreamPlan& stream_plan) {
    flatten(stream_plan, stream_, flat_);
    for (std::size_t i = 0; i < roads_.size(); ++i) {
      if (simulator_.time(flat_, roads_[i], allowed_[i].time) > allowed_[i].time) return false;
    }
    return true;
  }

 private:
  const GradientStream& stream_;
  Simulator& simulator_;
  std::span<const Allowed> allowed_;
  std::vector<FlatRoad> roads_;
  FlatPlan flat_;
};

}  // namespace

bool merge_messages(StreamPlan& stream_plan, const GradientStream& stream, Simulator& simulator,
                    std::span<const Allowed> allowed, std::uint64_t max_events,
                    const OutOfTime& out_of_time) {
  Judge judge(stream, simulator, allowed);
  if (!judge.passes(stream_plan)) return false;
  StreamPlan trial;
  const auto merges = [&](std::size_t message) {
    return std::ranges::any_of(std::array{Place::kOfSecond, Place::kOfFirst}, [&](Place place) {
      if (simulator.events() >= max_events || is_out(out_of_time)) return false;
      trial = stream_plan;
      merge(trial, message, place);
      return judge.passes(trial);
    });
  };
  for (bool lighter = true; std::exchange(lighter, false);) {
    for (std::size_t message = 0; message + 1 < stream_plan.ends.size();) {
      if (merges(message)) {
        std::swap(stream_plan, trial);
        lighter = true;
      } else {
        ++message;
      }
    }
  }
  return true;
}

}  // namespace commtune::tuner
