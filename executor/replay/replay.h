#pragma once
// A workload that needs no model code: layers last as long as the profile says, gradients of the real sizes
// really travel, and what comes back is compared with what every rank put in. What a layer is made of, and
// where gradients lie, is a derived class's business.

#include <cstdint>
#include <span>
#include <vector>

#include "executor/replay/layer_steps.h"
#include "executor/replay/session_workload.h"
#include "executor/session/layer_times.h"
#include "executor/session/session.h"
#include "perfmodel/profile.h"

namespace commtune {

/// Computes by the clock: a time line of absolute moments, so that late wake-ups do not add up; the way an
/// accelerator leaves its host's processor idle, which wakes up only for what somebody waits for. One thread.
class TimeLine {
 public:
  /// Lets this thread's sleeps end within a microsecond or so of their time where the system allows.
  TimeLine();
  /// The time line begins now.
  void begin() { now_ = Clock::now(); }
  /// A step of this length ends.
  void advance(Seconds length);
  /// Sleeps until the clock is where the time line is: before anything that others can see.
  void catch_up() const;
  /// Something that the next step needs arrived only now.
  void restart() { now_ = std::max(now_, Clock::now()); }
  /// What ended later than it should have.
  void restart_at(Clock::time_point when) { now_ = std::max(now_, when); }
  /// Where the time line is: the end of the last step.
  Clock::time_point now() const { return now_; }

 private:
  Clock::time_point now_;
};

class Replay : public SessionWorkload {
 public:
  std::uint64_t gradient_bytes() const override;
  void follow(const Plan& plan) override;
  IterationTimes iterate(Session& session, Compare compare) override;
  std::span<const LayerTimes> layers() const override { return layers_; }
  std::uint64_t tensors_compared() const override { return tensors_compared_; }
  std::uint64_t spots_compared() const override { return spots_compared_; }

 protected:
  /// profile  lives as long as this
  Replay(const Profile& profile, int rank, int workers, Result result);

  const LayerSteps& steps() const { return steps_; }
  DataType type() const { return steps_.profile().type; }
  const TimeLine& time_line() const { return time_line_; }
  int rank() const { return rank_; }
  std::uint64_t iteration() const { return iteration_; }
  /// What element `index` of a gradient holds before the iteration.
  float put_in(TensorId tensor, std::size_t index) const;
  void fill_whole(TensorId tensor, std::span<std::byte> gradient) const;
  /// Compares, counts, and throws as iterate() does.
  void compare_spot(TensorId tensor, std::size_t index, float value);
  void compare_whole(TensorId tensor, std::span<const std::byte> gradient);

  // What a derived class does at each place of an iteration.
  virtual void write_everything() = 0;
  virtual void begin_timed() = 0;  ///< before the first layer of an iteration that compares spots
  /// A step of a layer lasts until then.
  virtual void compute_until(Clock::time_point end) = 0;
  /// Before a layer's backward ends, in an iteration that compares spots.
  virtual void write_spots(TensorRange tensors) = 0;
  /// The steps so far have made these gradients.
  virtual void release(Session& session, TensorRange tensors, bool on_time) = 0;
  /// The last step ends where the time line is; returns when it really ended.
  virtual Clock::time_point finish() = 0;
  /// Instead of finish(), where an iteration ends early: its session hears no more of it from here on.
  virtual void give_up() noexcept = 0;
  virtual void compare_spots() = 0;
  virtual void compare_everything() = 0;

 private:
  void run_layers(Session& session, Compare compare, IterationTimes& times);
  void run_backward(Session& session, Compare compare);
  void run_forward(Session& session, IterationTimes& times);

  const int rank_, workers_;
  LayerSteps steps_;
  TimeLine time_line_;
  std::vector<LayerTimes> layers_;
  std::uint64_t iteration_ = 0;
  bool interrupted_ = true;  // something without a place on the time line was done since the last iteration
  std::uint64_t tensors_compared_ = 0, spots_compared_ = 0;
};

}  // namespace commtune
