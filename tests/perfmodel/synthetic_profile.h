#pragma once
// Made-up models: "1000 small tensors", "one large one".

#include <string>
#include <utility>

#include "perfmodel/base/units.h"
#include "perfmodel/profile.h"

namespace commtune {

/// `layers` equal layers of `tensors_per_layer` float32 tensors of `per_tensor` bytes each.
///
/// layers                      at least 1
/// per_tensor                  a positive multiple of 4 B
/// forward, backward, update   of the whole model, split evenly over the layers
inline Profile synthetic_profile(int layers, Bytes per_tensor, Seconds forward, Seconds backward,
                                 int tensors_per_layer = 1, Seconds update = Seconds{0}) {
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
