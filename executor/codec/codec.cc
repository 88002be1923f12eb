#include "executor/codec/codec.h"

namespace commtune {

std::size_t Codec::wire_bytes(std::size_t gradients) const {
  return gradients / element_size(DataType::kFloat32).count * element_size(type).count;
}

std::optional<Codec> codec_of(WireFormat wire, int divided_by) {
  if (wire == WireFormat::kAsIs) return std::nullopt;
  return Codec{wire_type(wire, DataType::kFloat32), 1.0F / static_cast<float>(divided_by)};
}

}  // namespace commtune
