#include "probes/backlog.h"

#include <chrono>

namespace commtune::probes {

namespace {

// Behind a stream of twice the length what is urgent waits no more than so many times as long: it is full.
constexpr double kFull = 1.2;
constexpr std::size_t kRepetitions = 3;

/// Tries for as long as they may take.
class Trials {
 public:
  Trials(const TryBacklog& measure, Seconds allowed) : measure_(measure), left_(allowed) {}

  /// The first may always be made: what one message takes shows by it, slow hosts included.
  std::optional<double> first(int ahead) {
    const auto began = std::chrono::steady_clock::now();
    const std::optional<double> wait = measure_(ahead);
    const Seconds took = std::chrono::steady_clock::now() - began;
    each_ = took / ahead;
    left_ -= took;
    return wait;
  }

  std::optional<double> again(int ahead) {
    if (each_ * ahead > left_) return std::nullopt;
    left_ -= each_ * ahead;
    return measure_(ahead);
  }

 private:
  const TryBacklog& measure_;
  Seconds left_, each_{0};
};

}  // namespace

std::optional<Backlog> find_backlog(const TryBacklog& measure, Seconds allowed) {
  Trials trials(measure, allowed);
  const std::optional<double> first = trials.first(kFewestAhead);
  if (!first) return std::nullopt;
  Backlog found{kFewestAhead, {*first}};
  bool full = false;
  while (!full && 2 * found.ahead <= kMostAhead) {
    const std::optional<double> longer = trials.again(2 * found.ahead);
    if (!longer) return found;
    full = *longer <= kFull * found.waits.front();
    if (full) {
      found.waits.push_back(*longer);
    } else {
      found = {2 * found.ahead, {*longer}};
    }
  }
  while (found.waits.size() < kRepetitions) {
    const std::optional<double> wait = trials.again(found.ahead);
    if (!wait) break;
    found.waits.push_back(*wait);
  }
  return found;
}

}  // namespace commtune::probes
