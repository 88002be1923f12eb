#pragma once
// Made-up models for tests and benchmarks: "1000 small tensors", "one large one".

#include "perfmodel/profile.h"
#include "perfmodel/units.h"

namespace commtune {

/// `layers` equal layers of `tensors_per_layer` float32 tensors of `per_tensor` bytes each.
///
/// forward, backward, update   of the whole model, split evenly over the layers
/// throws  Error{kBadInput} unless layers >= 1, tensors_per_layer >= 0, per_tensor is a positive multiple of
///         4 B, and no time is negative or infinite
Profile synthetic_profile(int layers, Bytes per_tensor, Seconds forward, Seconds backward,
                          int tensors_per_layer = 1, Seconds update = Seconds{0});

}  // namespace commtune
