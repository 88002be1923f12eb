#include "probes/load/compute_load.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>

namespace commtune::probes {

namespace {

// Timers of the kernel are late by their slack: 50 us unless told otherwise, 2.5 % of a step. This is 0.05 %.
constexpr unsigned long kTimerSlackNanoseconds = 1000;

void sleep_until(Nanoseconds due) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(due);
  const timespec until{seconds.count(), (due - seconds).count()};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

/// A fixed amount of arithmetic in registers and the first-level cache.
double arithmetic(int rounds) {
  std::array<double, 512> values;
  values.fill(1.0);
  for (int round = 0; round < rounds; ++round) {
    for (double& value : values) value = value * 0.999'999 + 1e-6;
  }
  return values[static_cast<std::size_t>(rounds) % values.size()];
}

/// Rounds that fill a step on this processor when nothing else runs: measured once in a process.
int rounds_of_a_step() {
  static const int rounds = [] {
    constexpr int kTrial = 2000;  // rounds, about half a millisecond: long beside a clock's resolution
    Nanoseconds fastest = Nanoseconds::max();
    volatile double kept = 0;
    for (int i = 0; i < 5; ++i) {
      const Nanoseconds start = now();
      kept = kept + arithmetic(kTrial);
      fastest = std::min(fastest, now() - start);
    }
    return static_cast<int>(kTrial * (kStepLength / std::max(fastest, Nanoseconds{1})) + 1);
  }();
  return rounds;
}

}  // namespace

ComputeLoad::ComputeLoad(StepKind kind) : kind_(kind) {
  durations_.reserve(kMostEnds);
  if (kind_ == StepKind::kProcessor) rounds_of_a_step();
}

void ComputeLoad::step(Nanoseconds due) {
  switch (kind_) {
    case StepKind::kTimeline:
      return sleep_until(due);
    case StepKind::kProcessor:
      work_ += arithmetic(rounds_of_a_step());
      return;
  }
}

std::vector<Nanoseconds> ComputeLoad::run(int steps) {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds, 0, 0, 0);
  const Nanoseconds begin = now();
  Nanoseconds before = begin;
  for (int i = 1; i <= steps && !stopping_ && durations_.size() < kMostEnds; ++i) {
    step(begin + i * kStepLength);
    const Nanoseconds end = now();
    durations_.push_back(end - before);
    before = end;
  }
  return durations_;
}

void ComputeLoad::start() {
  thread_ = std::jthread([this] { run(static_cast<int>(kMostEnds)); });
}

std::vector<Nanoseconds> ComputeLoad::stop() {
  // The step under way may end after the bytes do: it does not count.
  stopping_ = true;
  thread_.join();
  if (!durations_.empty()) durations_.pop_back();
  return std::move(durations_);
}

}  // namespace commtune::probes
