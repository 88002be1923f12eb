#include "executor/replay/replay.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "executor/memory/reduce.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

std::size_t element_count(std::span<const std::byte> gradient, DataType type) {
  return gradient.size() / element_size(type).count;
}

/// Elements of a tensor that timed iterations compare.
std::array<std::size_t, 3> spots(std::size_t elements) { return {0, elements / 2, elements - 1}; }

}  // namespace

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
    : profile_(profile), rank_(rank), workers_(workers), result_(result), layers_(profile.layers.size()) {
  std::uint32_t tensor = 0;
  for (const auto& layer : profile.layers) {
    const auto end = tensor + static_cast<std::uint32_t>(layer.tensors.size());
    plan_.push_back({layer.backward, layer.update + layer.forward, tensor, end});
    tensor = end;
  }
  memory_bytes_ = profile.gradient_bytes().count;
  memory_ = std::make_unique<std::byte[]>(memory_bytes_);
  std::byte* end = memory_.get() + memory_bytes_;
  for (const TensorRef& each : tensors_of(profile)) {
    end -= each.bytes.count;
    gradients_.emplace_back(end, each.bytes.count);
  }
}

IterationTimes Replay::iterate(Engine& engine, Compare compare) {
  ++iteration_;
  if (compare == Compare::kEverything) {
    for (std::uint32_t i = 0; i < gradients_.size(); ++i)
      fill(gradients_[i], profile_.type, rank_, i, iteration_);
  }
  // A timed iteration goes on where the time line is: it begins when the one before ended.
  if (compare == Compare::kEverything || interrupted_) time_line_.begin();
  interrupted_ = compare == Compare::kEverything;
  IterationTimes times;
  times.start = time_line_.now();
  engine.begin_iteration();
  for (std::size_t i = plan_.size(); i-- > 0;) {
    layers_[i].backward_start = time_line_.now();
    if (compare == Compare::kSpots) {
      for (std::uint32_t tensor = plan_[i].first_tensor; tensor < plan_[i].end_tensor; ++tensor)
        write_spots(tensor);
    }
    time_line_.advance(plan_[i].backward);
    layers_[i].backward_end = time_line_.now();
    if (engine.releases(i)) time_line_.catch_up();
    engine.gradient_ready(i);
  }
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    if (!engine.is_back(i)) time_line_.catch_up();
    const Clock::time_point asked = std::max(time_line_.now(), Clock::now());
    if (engine.wait_for(i, asked)) {
      time_line_.restart();
      times.waited += Clock::now() - asked;
    }
    layers_[i].forward_start = time_line_.now();
    time_line_.advance(plan_[i].update_and_forward);
    layers_[i].forward_end = time_line_.now();
  }
  times.end = time_line_.now();
  time_line_.catch_up();
  if (compare == Compare::kEverything) {
    compare_everything();
  } else {
    compare_spots();
  }
  return times;
}

void Replay::write_spots(std::uint32_t tensor) {
  const std::span<std::byte> gradient = gradients_[tensor];
  for (const std::size_t index : spots(element_count(gradient, profile_.type))) {
    set_element(profile_.type, gradient, index,
                static_cast<float>(pattern_value(rank_, tensor, index, iteration_)));
  }
}

void Replay::compare_spots() {
  for (std::uint32_t tensor = 0; tensor < gradients_.size(); ++tensor) {
    for (const std::size_t index : spots(element_count(gradients_[tensor], profile_.type))) {
      const float expected = pattern_result(workers_, result_, profile_.type, tensor, index, iteration_);
      if (element(profile_.type, gradients_[tensor], index) != expected) refuse(tensor, index);
      ++spots_compared_;
    }
  }
}

void Replay::compare_everything() {
  for (std::uint32_t tensor = 0; tensor < gradients_.size(); ++tensor) {
    const auto wrong = first_wrong(gradients_[tensor], profile_.type, workers_, result_, tensor, iteration_);
    if (wrong) refuse(tensor, *wrong);
    ++tensors_compared_;
  }
}

void Replay::refuse(std::uint32_t tensor, std::size_t index) const {
  std::uint32_t seen = 0;
  std::string name;
  for (const auto& layer : profile_.layers) {
    for (const Tensor& each : layer.tensors) {
      if (seen++ == tensor) name = each.name;
    }
  }
  throw Error(ErrorCode::kConflict,
              fmt::format("rank {}: gradient {}[{}] came back as {} in iteration {}: must be {}", rank_, name,
                          index, element(profile_.type, gradients_[tensor], index), iteration_,
                          pattern_result(workers_, result_, profile_.type, tensor, index, iteration_)));
}

}  // namespace commtune
