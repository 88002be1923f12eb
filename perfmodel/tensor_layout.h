#pragma once
// What travels in every iteration, whoever computes it: gradient tensors in the order in which the model's
// layers have them. A profile is a layout and times.

#include <string>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/profile.h"

namespace commtune {

struct TensorLayout {
  DataType type = DataType::kFloat32;
  std::vector<Tensor> tensors;  ///< by TensorId

  Bytes bytes() const;
};

/// Half-open range of tensors, such as those of one layer; may be empty.
struct TensorRange {
  TensorId first = 0, end = 0;
};

TensorLayout layout_of(const Profile& profile);

/// layout_digest() of every profile that has this layout.
std::string digest(const TensorLayout& layout);

}  // namespace commtune
