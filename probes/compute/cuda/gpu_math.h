#pragma once
// What layers are computed with on a GPU: products, convolutions and kernels, as steps that are put on one
// stream. Knows nothing of CUDA, so that which calls a layer makes can be checked anywhere.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "probes/compute/architecture.h"

namespace commtune::compute {

/// In a GPU's memory; 0 is none.
using DevicePointer = std::uint64_t;

/// Puts its work on the stream and does not wait for it.
using Step = std::function<void()>;

struct StepPair {
  Step forward, backward;
};

/// Row-major matrices of the precision's type: c = factor * op(a) op(b), `count` of them one behind the
/// other.
struct MatrixProduct {
  int rows = 0, columns = 0;  ///< of c
  int inner = 0;              ///< what is summed over
  bool transpose_a = false;   ///< a lies as inner x rows
  bool transpose_b = false;   ///< b lies as columns x inner
  DevicePointer a = 0, b = 0, c = 0;
  int count = 1;
  float factor = 1;
};

/// What a layer reads and writes, forward and backward, of the precision's type.
struct Activations {
  DevicePointer input = 0, output = 0;
  DevicePointer output_gradient = 0, input_gradient = 0;
};

struct ConvolutionMemory {
  Activations data;
  DevicePointer weights = 0, weight_gradient = 0;  ///< of the precision's type
  DevicePointer bias = 0, bias_gradient = 0;       ///< likewise; 0: none
};

/// All float32.
struct NormMemory {
  DevicePointer scale = 0, shift = 0, scale_gradient = 0, shift_gradient = 0;
};

/// A kernel of probes/compute/cuda/kernels, or of executor/memory/cuda's elementwise ones. One-dimensional.
struct KernelCall {
  std::string name;  ///< "commtune_profile_addition_fp32"
  std::uint32_t grid = 1, block = 256;
  std::vector<std::uint64_t>
      arguments;  ///< each in the lowest bytes: pointers, 64-bit numbers, argument_of()
};
std::uint64_t argument_of(float value);

/// How many blocks of this size cover so many threads, and no more than keep a GPU full.
std::uint32_t blocks_for(std::int64_t threads, std::uint32_t block);

class GpuMath {
 public:
  virtual ~GpuMath() = default;

  /// Of the numbers that activations have: 4 or 2 bytes.
  virtual std::size_t element_bytes() const = 0;
  /// Memory for as long as this object lives. throws  Error{kUnavailable} when there is not so much left
  virtual DevicePointer allocate(std::size_t bytes) = 0;
  /// Values drawn evenly from middle - spread to middle + spread, at once.
  virtual void fill(DevicePointer data, std::int64_t elements, bool is_float32, float middle,
                    float spread) = 0;

  // What follows throws Error{kUnavailable} naming the library's call where it can not do it. Forward passes
  // are run once, so that what backward ones read is there.
  virtual Step product(const MatrixProduct& product) = 0;
  virtual StepPair convolution(const Convolution& shape, int batch, const ConvolutionMemory& memory) = 0;
  virtual StepPair batch_norm(const BatchNorm& shape, int batch, const Activations& data,
                              const NormMemory& memory) = 0;
  virtual StepPair pooling(const Pooling& shape, int batch, const Activations& data) = 0;
  /// Each row alone. `output_gradient` and `input_gradient` may be one.
  virtual StepPair softmax(std::int64_t rows, int width, const Activations& data) = 0;
  virtual Step zero(DevicePointer data, std::size_t bytes) = 0;
  virtual Step kernel(const KernelCall& call) = 0;
};

}  // namespace commtune::compute
