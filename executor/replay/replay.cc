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
    : profile_(profile),
      rank_(rank),
      workers_(workers),
      result_(result),
      expected_(result),
      layers_(profile.layers.size()) {
  std::uint32_t tensor = 0;
  for (const auto& layer : profile.layers) {
    const auto end = tensor + static_cast<std::uint32_t>(layer.tensors.size());
    steps_.push_back({layer.backward, layer.update + layer.forward, {tensor, end}});
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

void Replay::follow(const Plan& plan) {
  interrupted_ = true;
  release_ = plan.release;
  const bool divides_first = plan.wire != WireFormat::kAsIs && result_ == Result::kMean;
  times_ = divides_first ? workers_ : 1;
  expected_ = divides_first ? Result::kSum : result_;
  for (Layer& layer : steps_) layer.releases = false;
  if (release_ == Release::kBackward) return;
  const std::vector<TensorRef> tensors = tensors_of(profile_);
  for (const Message& message : plan.messages) {
    std::size_t last = steps_.size() - 1;  // of its layers to end: they end from the last to the first
    for (const Piece& piece : message.pieces) last = std::min<std::size_t>(last, tensors[piece.tensor].layer);
    steps_[last].releases = true;
  }
}

IterationTimes Replay::iterate(Session& session, Compare compare) {
  ++iteration_;
  if (compare == Compare::kEverything) {
    for (std::uint32_t i = 0; i < gradients_.size(); ++i)
      fill(gradients_[i].host(), profile_.type, rank_, i, iteration_, times_);
  }
  // A timed iteration goes on where the time line is: it begins when the one before ended.
  if (compare == Compare::kEverything || interrupted_) time_line_.begin();
  interrupted_ = compare == Compare::kEverything;
  IterationTimes times;
  times.start = time_line_.now();
  session.begin_iteration();
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const Layer& layer = steps_[i];
    layers_[i].backward_start = time_line_.now();
    if (compare == Compare::kSpots) {
      for (std::uint32_t tensor = layer.tensors.first; tensor < layer.tensors.end; ++tensor)
        write_spots(tensor);
    }
    time_line_.advance(layer.backward);
    layers_[i].backward_end = time_line_.now();
    if (layer.releases) time_line_.catch_up();
    if (release_ == Release::kGradient) session.ready(layer.tensors);
  }
  if (release_ == Release::kBackward) {
    time_line_.catch_up();
    session.ready({0, static_cast<TensorId>(gradients_.size())});
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!session.is_back(steps_[i].tensors)) time_line_.catch_up();
    const Clock::time_point asked = std::max(time_line_.now(), Clock::now());
    if (session.wait(steps_[i].tensors, asked)) {
      time_line_.restart();
      times.waited += Clock::now() - asked;
    }
    layers_[i].forward_start = time_line_.now();
    time_line_.advance(steps_[i].update_and_forward);
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
  const std::span<std::byte> gradient = gradients_[tensor].host();
  for (const std::size_t index : spots(element_count(gradient, profile_.type))) {
    set_element(profile_.type, gradient, index,
                static_cast<float>(times_ * pattern_value(rank_, tensor, index, iteration_)));
  }
}

void Replay::compare_spots() {
  for (std::uint32_t tensor = 0; tensor < gradients_.size(); ++tensor) {
    for (const std::size_t index : spots(element_count(gradients_[tensor].host(), profile_.type))) {
      const float expected = pattern_result(workers_, expected_, profile_.type, tensor, index, iteration_);
      if (element(profile_.type, gradients_[tensor].host(), index) != expected) refuse(tensor, index);
      ++spots_compared_;
    }
  }
}

void Replay::compare_everything() {
  for (std::uint32_t tensor = 0; tensor < gradients_.size(); ++tensor) {
    const auto wrong =
        first_wrong(gradients_[tensor].host(), profile_.type, workers_, expected_, tensor, iteration_);
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
                          index, element(profile_.type, gradients_[tensor].host(), index), iteration_,
                          pattern_result(workers_, expected_, profile_.type, tensor, index, iteration_)));
}

}  // namespace commtune
