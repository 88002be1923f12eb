#include "probes/sampling/head_of_line.h"

namespace commtune::probes {

namespace {

// Sockets are full when a stream of twice the length makes the urgent message wait at most this many times as
// long: behind sockets with room it waits twice as long, behind full ones as long as before, give or take
// what waits differ by.
constexpr double kFull = 1.2;
// Tries behind the stream that is full: the fewest whose median one disturbed try does not move.
constexpr std::size_t kRepetitions = 3;

/// Measures the wait behind streams of various lengths until the allowed time is used up.
class Trials {
 public:
  Trials(const TryHeadOfLine& measure, Seconds allowed) : measure_(measure), left_(allowed) {}

  /// The wait behind a stream of `ahead` messages, in seconds; nullopt if there is no time for it. The first
  /// call is always made, because only it shows how long a message takes here.
  std::optional<double> wait_behind(int ahead) {
    if (each_ * ahead > left_) return std::nullopt;
    const std::optional<HeadOfLineTrial> trial = measure_(ahead);
    if (!trial) return std::nullopt;
    if (each_ == Seconds{0}) each_ = trial->took / ahead;
    left_ -= each_ * ahead;
    return trial->wait;
  }

 private:
  const TryHeadOfLine& measure_;
  Seconds left_, each_{0};
};

}  // namespace

std::optional<HeadOfLineWaits> find_head_of_line(const TryHeadOfLine& measure, int fewest, Seconds allowed) {
  Trials trials(measure, allowed);
  const std::optional<double> first = trials.wait_behind(fewest);
  if (!first) return std::nullopt;
  HeadOfLineWaits found{fewest, {*first}};
  bool full = false;
  while (!full && 2 * found.ahead <= kMostAhead) {
    const std::optional<double> longer = trials.wait_behind(2 * found.ahead);
    if (!longer) break;
    full = *longer <= kFull * found.waits.front();
    if (full) {
      found.waits.push_back(*longer);
    } else {
      found = {2 * found.ahead, {*longer}};
    }
  }
  while (found.waits.size() < kRepetitions) {
    const std::optional<double> wait = trials.wait_behind(found.ahead);
    if (!wait) break;
    found.waits.push_back(*wait);
  }
  return found;
}

}  // namespace commtune::probes
