#include "executor/replay/host_replay.h"

#include "executor/memory/reduce.h"

namespace commtune {

HostReplay::HostReplay(const Profile& profile, int rank, int workers, Result result)
    : Replay(profile, rank, workers, result), memory_(std::make_unique<std::byte[]>(gradient_bytes())) {
  std::byte* end = memory_.get() + gradient_bytes();
  for (const TensorRef& each : tensors_of(profile)) {
    end -= each.bytes.count;
    gradients_.emplace_back(end, each.bytes.count);
  }
}

void HostReplay::write_everything() {
  for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor)
    fill_whole(tensor, gradients_[tensor].host());
}

void HostReplay::write_spots(TensorRange tensors) {
  for (TensorId tensor = tensors.first; tensor < tensors.end; ++tensor) {
    for (const std::size_t index : spots(elements(tensor)))
      set_element(type(), gradients_[tensor].host(), index, put_in(tensor, index));
  }
}

void HostReplay::release(Session& session, TensorRange tensors, bool on_time) {
  if (on_time) time_line().catch_up();
  session.ready(tensors);
}

Clock::time_point HostReplay::finish() {
  time_line().catch_up();
  return time_line().now();
}

void HostReplay::compare_spots() {
  for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor) {
    for (const std::size_t index : spots(elements(tensor)))
      compare_spot(tensor, index, element(type(), gradients_[tensor].host(), index));
  }
}

void HostReplay::compare_everything() {
  for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor)
    compare_whole(tensor, gradients_[tensor].host());
}

}  // namespace commtune
