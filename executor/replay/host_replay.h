#pragma once
// A replay whose layers pass by the clock, with gradients in the host's memory.

#include <memory>

#include "executor/replay/replay.h"

namespace commtune {

class HostReplay final : public Replay {
 public:
  HostReplay(const Profile& profile, int rank, int workers, Result result);
  const Gradients& gradients() const override { return gradients_; }

 private:
  void write_everything() override;
  void begin_timed() override {}
  void compute_until(Clock::time_point /*end*/) override {}
  void write_spots(TensorRange tensors) override;
  void release(Session& session, TensorRange tensors, bool on_time) override;
  Clock::time_point finish() override;
  void give_up() noexcept override {}
  void compare_spots() override;
  void compare_everything() override;
  std::size_t elements(TensorId tensor) const {
    return gradients_[tensor].bytes / element_size(type()).count;
  }

  std::unique_ptr<std::byte[]> memory_;
  Gradients gradients_;
};

}  // namespace commtune
