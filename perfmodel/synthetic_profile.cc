#include "perfmodel/synthetic_profile.h"

#include <cmath>

#include "perfmodel/error.h"

namespace commtune {

namespace {

void require(bool holds, const std::string& what) {
  if (!holds) {
    throw Error(ErrorCode::kBadInput, "synthetic profile: " + what);
  }
}

void require_time(const char* name, Seconds time) {
  require(std::isfinite(time.count()) && time.count() >= 0,
          std::string(name) + " = " + std::to_string(time.count()) + " s: must be finite and not negative");
}

}  // namespace

Profile synthetic_profile(int layers, Bytes per_tensor, Seconds forward, Seconds backward,
                          int tensors_per_layer, Seconds update) {
  const Bytes element = element_size(DataType::kFloat32);
  require(layers >= 1, "layers = " + std::to_string(layers) + ": must be at least 1");
  require(tensors_per_layer >= 0,
          "tensors_per_layer = " + std::to_string(tensors_per_layer) + ": must not be negative");
  require(per_tensor.count > 0 && per_tensor.count % element.count == 0,
          "per_tensor = " + std::to_string(per_tensor.count) + " B: must be a positive multiple of 4 B");
  require_time("forward", forward);
  require_time("backward", backward);
  require_time("update", update);

  Profile profile;
  profile.model = "synthetic";
  profile.origin = {"derived", "", "made up",
                    std::to_string(layers) + " equal layers; describes no real model"};
  profile.layers.reserve(static_cast<std::size_t>(layers));
  for (int l = 0; l < layers; ++l) {
    Layer layer;
    layer.name = "layer" + std::to_string(l);
    layer.forward = forward / layers;
    layer.backward = backward / layers;
    layer.update = update / layers;
    for (int t = 0; t < tensors_per_layer; ++t) {
      layer.tensors.push_back({layer.name + ".weight" + std::to_string(t), per_tensor});
    }
    profile.layers.push_back(std::move(layer));
  }
  return profile;
}

}  // namespace commtune
