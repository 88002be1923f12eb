#include "executor/replay/layer_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/replay/pattern.h"
#include "perfmodel/base/error.h"

namespace commtune {

std::array<std::size_t, 3> spots(std::size_t elements) { return {0, elements / 2, elements - 1}; }

LayerSteps::LayerSteps(const Profile& profile, int workers, Result result)
    : profile_(profile), workers_(workers), result_(result), expected_(result) {
  TensorId tensor = 0;
  for (const auto& layer : profile.layers) {
    const auto end = tensor + static_cast<TensorId>(layer.tensors.size());
    steps_.push_back({layer.backward, layer.update + layer.forward, {tensor, end}});
    tensor = end;
  }
}

void LayerSteps::follow(const Plan& plan) {
  release_ = plan.release;
  const bool divides_first = plan.wire != WireFormat::kAsIs && result_ == Result::kMean;
  times_ = divides_first ? workers_ : 1;
  expected_ = divides_first ? Result::kSum : result_;
  for (LayerStep& step : steps_) step.releases = false;
  if (release_ == Release::kBackward) return;
  const std::vector<TensorRef> tensors = tensors_of(profile_);
  for (const Message& message : plan.messages) {
    std::size_t last = steps_.size() - 1;  // of its layers to end: they end from the last to the first
    for (const Piece& piece : message.pieces) last = std::min<std::size_t>(last, tensors[piece.tensor].layer);
    steps_[last].releases = true;
  }
}

void LayerSteps::refuse(int rank, int workers, TensorId tensor, std::size_t index, float value,
                        std::uint64_t iteration) const {
  TensorId seen = 0;
  std::string name;
  for (const auto& layer : profile_.layers) {
    for (const Tensor& each : layer.tensors) {
      if (seen++ == tensor) name = each.name;
    }
  }
  throw Error(ErrorCode::kConflict,
              fmt::format("rank {}: gradient {}[{}] came back as {} in iteration {}: must be {}", rank, name,
                          index, value, iteration,
                          pattern_result(workers, expected_, profile_.type, tensor, index, iteration)));
}

}  // namespace commtune
