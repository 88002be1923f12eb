#pragma once
// A workload of a session that needs no model code: layers last as long as the profile says, gradients of the
// real sizes really travel, and what comes back is compared with what every rank put in.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/replay/pattern.h"
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
  /// Where the time line is: the end of the last step.
  Clock::time_point now() const { return now_; }

 private:
  Clock::time_point now_;
};

/// What a timed iteration compares.
enum class Compare {
  kEverything,  ///< gradients are written in full before the iteration and compared in full after it
  kSpots,       ///< a few elements of every tensor, written before the layer ends
};

class Replay {
 public:
  /// profile  lives as long as this
  Replay(const Profile& profile, int rank, int workers, Result result);

  /// Memory of the gradients, for the session: side by side, the last tensor first.
  const Gradients& gradients() const { return gradients_; }
  std::uint64_t gradient_bytes() const { return memory_bytes_; }

  /// The session has adopted this plan: which layers have to end on time is its business. Where it divides
  /// before it casts, gradients are that many times the pattern, so that what is summed are whole numbers and
  /// exact in every type; the result is the sum of the patterns.
  void follow(const Plan& plan);

  /// Runs backward from the last layer to the first, then updates each layer and runs it forward, with the
  /// barrier of the session's plan.
  /// throws  Error{kConflict} naming tensor, element and values if a result differs from the reference; what
  ///         ended the session's engine
  IterationTimes iterate(Session& session, Compare compare);

  std::span<const LayerTimes> layers() const { return layers_; }
  std::uint64_t tensors_compared() const { return tensors_compared_; }
  std::uint64_t spots_compared() const { return spots_compared_; }

 private:
  struct Layer {
    Seconds backward{}, update_and_forward{};
    TensorRange tensors;
    bool releases = false;  // its gradients are the last that some message waits for
  };
  void write_spots(std::uint32_t tensor);
  void compare_spots();
  void compare_everything();
  [[noreturn]] void refuse(std::uint32_t tensor, std::size_t index) const;

  const Profile& profile_;
  const int rank_, workers_;
  const Result result_;
  std::vector<Layer> steps_;
  Release release_ = Release::kGradient;  // of the plan
  int times_ = 1;                         // the pattern: what every rank puts in; see follow()
  Result expected_;                       // of the patterns
  std::unique_ptr<std::byte[]> memory_;
  std::uint64_t memory_bytes_ = 0;
  Gradients gradients_;
  TimeLine time_line_;
  std::vector<LayerTimes> layers_;
  std::uint64_t iteration_ = 0;
  bool interrupted_ = true;  // something without a place on the time line was done since the last iteration
  std::uint64_t tensors_compared_ = 0, spots_compared_ = 0;
};

}  // namespace commtune
