#include "probes/load/compute_step.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <utility>

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

/// Steps that end on the host's clock.
class HostStep : public ComputeStep {
 public:
  Nanoseconds run() final {
    if (steps_ == 0) {
      prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds, 0, 0, 0);
      begin_ = before_ = now();
    }
    compute(begin_ + ++steps_ * kStepLength);
    const Nanoseconds end = now();
    return end - std::exchange(before_, end);
  }

 private:
  /// due  when it ends on a time line that knows no delays
  virtual void compute(Nanoseconds due) = 0;

  int steps_ = 0;
  Nanoseconds begin_{0}, before_{0};
};

class TimelineStep final : public HostStep {
  void compute(Nanoseconds due) override { sleep_until(due); }
};

class ProcessorStep final : public HostStep {
 public:
  ProcessorStep() { rounds_of_a_step(); }

 private:
  void compute(Nanoseconds /*due*/) override { work_ += arithmetic(rounds_of_a_step()); }

  double work_ = 0;  // keeps the arithmetic from being left out
};

}  // namespace

std::unique_ptr<ComputeStep> make_timeline_step() { return std::make_unique<TimelineStep>(); }

std::unique_ptr<ComputeStep> make_processor_step() { return std::make_unique<ProcessorStep>(); }

}  // namespace commtune::probes
