#include "perfmodel/tensor_layout.h"

#include <string_view>

#include "perfmodel/base/digest.h"

namespace commtune {
namespace {

constexpr std::string_view kLayoutFormat = "commtune/layout/1";

Digest begun_layout_digest(DataType type, std::size_t tensors) {
  Digest digest;
  digest.add(kLayoutFormat).add(to_string(type)).add(static_cast<std::uint64_t>(tensors));
  return digest;
}

void add_tensor(Digest& digest, const Tensor& tensor) { digest.add(tensor.name).add(tensor.bytes.count); }

}  // namespace

Bytes TensorLayout::bytes() const {
  Bytes total;
  for (const Tensor& tensor : tensors) total += tensor.bytes;
  return total;
}

TensorLayout layout_of(const Profile& profile) {
  TensorLayout layout{profile.type, {}};
  layout.tensors.reserve(profile.tensor_count());
  for (const Layer& layer : profile.layers) {
    layout.tensors.insert(layout.tensors.end(), layer.tensors.begin(), layer.tensors.end());
  }
  return layout;
}

std::string digest(const TensorLayout& layout) {
  Digest digest = begun_layout_digest(layout.type, layout.tensors.size());
  for (const Tensor& tensor : layout.tensors) add_tensor(digest, tensor);
  return digest.hex();
}

std::string layout_digest(const Profile& profile) {
  Digest digest = begun_layout_digest(profile.type, profile.tensor_count());
  for (const Layer& layer : profile.layers) {
    for (const Tensor& tensor : layer.tensors) add_tensor(digest, tensor);
  }
  return digest.hex();
}

}  // namespace commtune
