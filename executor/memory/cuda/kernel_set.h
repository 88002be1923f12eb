#pragma once
// The kernels that Memory's operations need, on the GPU that is current where this is made. For the sources
// of this folder.

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/memory/buffer.h"
#include "executor/memory/cuda/device.h"
#include "perfmodel/profile.h"

namespace commtune::cuda {

/// Each call puts one launch on the stream, or as many as there are hundreds of parts. Elements are whole.
class KernelSet {
 public:
  explicit KernelSet(const Gpu& gpu);

  void add(CUstream stream, DataType type, Buffer into, ConstBuffer from) const;
  void scale(CUstream stream, DataType type, Buffer data, float factor) const;
  /// Of different types.
  void cast(CUstream stream, DataType into_type, Buffer into, DataType from_type, ConstBuffer from) const;
  void gather(CUstream stream, Buffer into, std::span<const Buffer> parts) const;
  void scatter(CUstream stream, std::span<const Buffer> parts, ConstBuffer from) const;
  void encode(CUstream stream, DataType into_type, Buffer into, std::span<const Buffer> parts,
              float factor) const;
  /// overflows  of the device: what overflowed is added
  void decode(CUstream stream, std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
              CUdeviceptr overflows) const;

 private:
  struct TypeKernels {
    CUfunction add = nullptr, scale = nullptr;
    CUfunction encode = nullptr, decode = nullptr;  // of the short types
    CUfunction cast_from[3] = {};                   // by the type that is cast
  };
  const TypeKernels& of(DataType type) const { return by_type_[static_cast<std::size_t>(type)]; }
  void launch_elements(CUstream stream, CUfunction kernel, std::uint64_t elements, void** arguments) const;
  /// unit  bytes of a part that are one element of the kernel's
  template <typename Launch>
  void for_hundreds(std::span<const Buffer> parts, std::size_t unit, Launch launch) const;
  void launch_parts(CUstream stream, CUfunction kernel, std::uint64_t elements, std::uint32_t turn,
                    void** arguments) const;

  Module elementwise_, parts_;
  const unsigned most_blocks_;
  TypeKernels by_type_[3];
  CUfunction gather_ = nullptr, scatter_ = nullptr;
  const unsigned most_blocks_of_parts_;
};

}  // namespace commtune::cuda
