#include "executor/replay/replay.h"

#include <sys/prctl.h>

#include <algorithm>
#include <ctime>

#include "executor/memory/reduce.h"
#include "executor/replay/pattern.h"

namespace commtune {

TimeLine::TimeLine() : now_(Clock::now()) { prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0); }

void TimeLine::advance(Seconds length) { now_ += std::chrono::duration_cast<Clock::duration>(length); }

void TimeLine::catch_up() const {
  const auto since = now_.time_since_epoch();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since);
  timespec until{};
  until.tv_sec = whole.count();
  until.tv_nsec = static_cast<long>((since - whole).count());
  while (Clock::now() < now_ && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

Replay::Replay(const Profile& profile, int rank, int workers, Result result)
    : rank_(rank), workers_(workers), steps_(profile, workers, result), layers_(profile.layers.size()) {}

std::uint64_t Replay::gradient_bytes() const { return steps_.profile().gradient_bytes().count; }

void Replay::follow(const Plan& plan) {
  interrupted_ = true;
  steps_.follow(plan);
}

float Replay::put_in(TensorId tensor, std::size_t index) const {
  return static_cast<float>(steps_.times() * pattern_value(rank_, tensor, index, iteration_));
}

void Replay::fill_whole(TensorId tensor, std::span<std::byte> gradient) const {
  fill(gradient, type(), rank_, tensor, iteration_, steps_.times());
}

void Replay::compare_spot(TensorId tensor, std::size_t index, float value) {
  if (value != pattern_result(workers_, steps_.expected(), type(), tensor, index, iteration_))
    steps_.refuse(rank_, workers_, tensor, index, value, iteration_);
  ++spots_compared_;
}

void Replay::compare_whole(TensorId tensor, std::span<const std::byte> gradient) {
  const auto wrong = first_wrong(gradient, type(), workers_, steps_.expected(), tensor, iteration_);
  if (wrong) steps_.refuse(rank_, workers_, tensor, *wrong, element(type(), gradient, *wrong), iteration_);
  ++tensors_compared_;
}

IterationTimes Replay::iterate(Session& session, Compare compare) {
  ++iteration_;
  if (compare == Compare::kEverything) write_everything();
  // A timed iteration goes on where the time line is: it begins when the one before ended.
  if (compare == Compare::kEverything || interrupted_) time_line_.begin();
  interrupted_ = compare == Compare::kEverything;
  IterationTimes times;
  times.start = time_line_.now();
  session.begin_iteration();
  run_layers(session, compare, times);
  times.end = time_line_.now();
  if (compare == Compare::kEverything) {
    compare_everything();
  } else {
    compare_spots();
  }
  return times;
}

void Replay::run_layers(Session& session, Compare compare, IterationTimes& times) {
  try {
    if (compare == Compare::kSpots) begin_timed();
    run_backward(session, compare);
    run_forward(session, times);
    time_line_.restart_at(finish());
  } catch (...) {
    give_up();
    throw;
  }
}

void Replay::run_backward(Session& session, Compare compare) {
  const std::vector<LayerStep>& steps = steps_.all();
  for (std::size_t i = steps.size(); i-- > 0;) {
    const LayerStep& layer = steps[i];
    layers_[i].backward_start = time_line_.now();
    if (compare == Compare::kSpots) write_spots(layer.tensors);
    time_line_.advance(layer.backward);
    layers_[i].backward_end = time_line_.now();
    compute_until(time_line_.now());
    if (steps_.release() == Release::kGradient) release(session, layer.tensors, layer.releases);
  }
  if (steps_.release() == Release::kBackward) release(session, {0, steps.back().tensors.end}, true);
}

void Replay::run_forward(Session& session, IterationTimes& times) {
  const std::vector<LayerStep>& steps = steps_.all();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!session.is_back(steps[i].tensors)) time_line_.catch_up();
    const Clock::time_point asked = std::max(time_line_.now(), Clock::now());
    if (session.wait(steps[i].tensors, asked)) {
      time_line_.restart();
      times.waited += Clock::now() - asked;
    }
    layers_[i].forward_start = time_line_.now();
    time_line_.advance(steps[i].update_and_forward);
    layers_[i].forward_end = time_line_.now();
    compute_until(time_line_.now());
  }
}

}  // namespace commtune
