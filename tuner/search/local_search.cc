#include "tuner/search/local_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace commtune::tuner {

namespace {

/// A move must win at least this part: many smaller ones cost more simulations than they are worth.
constexpr double kWorthwhile = kIndifferent / 5;
/// In sequences longer than this a step is only moved to a place near its own, and a new one put at some
/// places.
constexpr std::size_t kManySteps = 32;
constexpr std::size_t kNear = 4;

class LocalSearch {
 public:
  LocalSearch(StreamPlan& stream_plan, const GradientStream& stream, const RoadCost& cost,
              Simulator& simulator, const LocalSearchLimits& limits)
      : best_(stream_plan),
        stream_(stream),
        road_(cost),
        simulator_(simulator),
        limits_(limits),
        time_(judge(stream_plan, kNoLimit)) {}

  /// A kind of move that won nothing is tried again once another one has changed the plan.
  double run() {
    std::array<Kind, 4> kinds{
        {{&LocalSearch::relocate}, {&LocalSearch::shift}, {&LocalSearch::merge}, {&LocalSearch::split}}};
    for (bool better = true; better && !done();) {
      better = false;
      for (Kind& kind : kinds) {
        if (kind.in_vain == changes_) continue;
        const bool won = (this->*kind.tries)();
        if (!won) kind.in_vain = changes_;
        better = better || won;
      }
    }
    return time_;
  }

 private:
  struct Kind {
    bool (LocalSearch::*tries)();                                   ///< whether it won anything
    std::size_t in_vain = std::numeric_limits<std::size_t>::max();  ///< changes_ when it last did not
  };

  bool done() const {
    return time_ <= limits_.good_enough || simulator_.events() >= limits_.max_events ||
           is_out(limits_.out_of_time);
  }

  double judge(const StreamPlan& stream_plan, Seconds limit) {
    flatten(stream_plan, stream_, flat_);
    return simulator_.time(flat_, road_, limit).count();
  }

  /// Takes the trial if it is faster.
  bool try_out() {
    const double limit = time_ * (1 - kWorthwhile);
    const double time = judge(trial_, Seconds{limit});
    if (time >= limit) return false;
    time_ = time;
    std::swap(best_, trial_);
    ++changes_;
    return true;
  }

  /// A decoupled message's distribute must stay behind its reduce.
  bool in_order(const std::vector<Step>& steps) {
    reduced_.assign(best_.ends.size() + 1, false);
    for (const Step& step : steps) {
      if (step.stage == Stage::kDistribute && !reduced_[step.message]) return false;
      reduced_[step.message] = true;
    }
    return true;
  }

  /// Another place for one step.
  bool relocate() {
    if (best_.by_layer) return false;  // the layers say where
    bool better = false;
    const std::size_t n = best_.steps.size();
    const std::size_t reach = n > kManySteps ? kNear : n;
    for (std::size_t from = 0; from < n; ++from) {
      const std::size_t first_place = from > reach ? from - reach : 0;
      for (std::size_t to = first_place; to < std::min(n, from + reach + 1) && !done(); ++to) {
        if (to == from || to + 1 == from) continue;  // the latter is the former move from the other side
        trial_ = best_;
        const auto first = trial_.steps.begin();
        const auto at = [first](std::size_t i) { return first + static_cast<std::ptrdiff_t>(i); };
        if (from < to) {
          std::rotate(at(from), at(from + 1), at(to + 1));
        } else {
          std::rotate(at(to), at(from), at(from + 1));
        }
        if (trial_.decoupled && !in_order(trial_.steps)) continue;
        better = try_out() || better;
      }
    }
    return better;
  }

  /// Another place for the end of a message, which is the beginning of its neighbour.
  bool shift() {
    bool better = false;
    for (std::size_t message = 0; message + 1 < best_.ends.size(); ++message) {
      for (int direction : {-1, 1}) {
        for (int reach = 4; reach >= -4 && !done(); --reach) {
          while (!is_out(limits_.out_of_time) && shift_end(message, direction, reach)) better = true;
        }
      }
    }
    return better;
  }

  /// reach >= 0: by 2^reach tensors; below: by 2^reach of the message that gets smaller.
  bool shift_end(std::size_t message, int direction, int reach) {
    const std::uint64_t end = best_.end(message);
    const std::uint64_t low = best_.begin(message), high = best_.end(message + 1);
    std::uint64_t place = 0;
    if (reach >= 0) {
      const auto hop = static_cast<std::size_t>(1) << reach;
      const std::size_t tensor = stream_.tensor_at(direction > 0 ? end : end - 1);
      if (direction > 0 ? tensor + hop > stream_.tensors() : tensor + 1 < hop) return false;
      place = stream_.end(direction > 0 ? tensor + hop : tensor + 1 - hop);
    } else {
      const std::uint64_t room = direction > 0 ? high - end : end - low;
      const std::uint64_t by = (room >> -reach) / stream_.element() * stream_.element();
      place = direction > 0 ? end + by : end - by;
    }
    if (place <= low || place >= high || place == end) return false;
    trial_ = best_;
    trial_.ends[message] = stream_.cut(place);
    return try_out();
  }

  /// Two neighbours in the stream become one message, at the place of either.
  bool merge() {
    bool better = false;
    for (std::size_t message = 0; message + 1 < best_.ends.size();) {
      bool merged = false;
      for (const Place place : {Place::kOfSecond, Place::kOfFirst}) {
        if (done() || merged) break;
        if (best_.by_layer && place == Place::kOfFirst) break;  // the same again
        trial_ = best_;
        tuner::merge(trial_, message, place);
        merged = try_out();
      }
      better = better || merged;
      if (!merged) ++message;
    }
    return better;
  }

  /// One message becomes two; either part stays, the other goes wherever that helps most.
  bool split() {
    bool better = false;
    for (std::size_t message = 0; message < best_.ends.size(); ++message) {
      for (const int quarter : {2, 1, 3}) {
        if (done()) return better;
        better = split_at(message, cut_place(message, quarter)) || better;
      }
    }
    return better;
  }

  /// The tensor's end that is nearest to so many quarters of the message, or that place itself in a large
  /// tensor.
  std::uint64_t cut_place(std::size_t message, int quarter) const {
    const std::uint64_t low = best_.begin(message), high = best_.end(message);
    const std::uint64_t aim =
        low + (high - low) / 4 * static_cast<std::uint64_t>(quarter) / stream_.element() * stream_.element();
    if (aim <= low || aim >= high) return low;
    const std::size_t tensor = stream_.tensor_at(aim);
    for (const std::uint64_t edge : {stream_.end(tensor), stream_.end(tensor + 1)}) {
      const std::uint64_t away = edge > aim ? edge - aim : aim - edge;
      if (edge > low && edge < high && away <= (high - low) / 8) return edge;
    }
    const std::uint64_t place =
        stream_.end(tensor) + (aim - stream_.end(tensor)) / stream_.element() * stream_.element();
    return place > low ? place : low;
  }

  bool split_at(std::size_t message, std::uint64_t place) {
    if (place <= best_.begin(message)) return false;
    const auto number = static_cast<std::uint32_t>(message);
    StreamPlan base = best_;
    base.ends.insert(base.ends.begin() + static_cast<std::ptrdiff_t>(message), stream_.cut(place));
    if (base.by_layer) {  // both parts have their places
      trial_ = std::move(base);
      order_by_layer(trial_);
      return try_out();
    }
    for (Step& step : base.steps) {
      if (step.message > number) ++step.message;
    }
    for (const std::uint32_t moves : {number, number + 1}) {
      const std::uint32_t stays = 2 * number + 1 - moves;
      StreamPlan halved = base;
      for (Step& step : halved.steps) {
        if (step.message == number) step.message = stays;
      }
      if (insert_anywhere(halved, moves, stays)) return true;
    }
    return false;
  }

  /// Tries the steps of a new message at every place; for decoupled ones next to each other, or the reduce
  /// beside its other half and the distribute anywhere.
  bool insert_anywhere(const StreamPlan& halved, std::uint32_t message, std::uint32_t other) {
    const std::size_t n = halved.steps.size();
    const std::size_t stride = n > kManySteps ? n / kManySteps + 1 : 1;
    for (std::size_t at = 0; at <= n && !done(); at += stride) {
      trial_ = halved;
      const auto place = trial_.steps.begin() + static_cast<std::ptrdiff_t>(at);
      if (!halved.decoupled) {
        trial_.steps.insert(place, {message, Stage::kReduce});
        if (try_out()) return true;
        continue;
      }
      const std::array<Step, 2> both{Step{message, Stage::kReduce}, Step{message, Stage::kDistribute}};
      trial_.steps.insert(place, both.begin(), both.end());
      if (try_out()) return true;
      const auto half = std::find(halved.steps.begin(), halved.steps.end(), Step{other, Stage::kReduce});
      const auto reduce_at = static_cast<std::size_t>(half - halved.steps.begin()) + 1;
      if (half == halved.steps.end() || at < reduce_at) continue;
      trial_ = halved;
      trial_.steps.insert(trial_.steps.begin() + static_cast<std::ptrdiff_t>(at), both[1]);
      trial_.steps.insert(trial_.steps.begin() + static_cast<std::ptrdiff_t>(reduce_at), both[0]);
      if (try_out()) return true;
    }
    return false;
  }

  StreamPlan& best_;
  StreamPlan trial_;
  const GradientStream& stream_;
  const FlatRoad road_;
  Simulator& simulator_;
  const LocalSearchLimits limits_;
  FlatPlan flat_;
  std::vector<bool> reduced_;
  double time_;
  std::size_t changes_ = 0;  ///< that were taken
};

}  // namespace

double local_search(StreamPlan& stream_plan, const GradientStream& stream, const RoadCost& cost,
                    Simulator& simulator, const LocalSearchLimits& limits) {
  return LocalSearch{stream_plan, stream, cost, simulator, limits}.run();
}

}  // namespace commtune::tuner
