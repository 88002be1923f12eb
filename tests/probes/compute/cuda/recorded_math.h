#pragma once
// Stands in for a GPU's libraries: notes what is asked for, and computes nothing.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "probes/compute/cuda/gpu_math.h"

namespace commtune::compute {

/// Runs of steps are counted by name; what lies where is checked against what was allocated.
class RecordedMath final : public GpuMath {
 public:
  explicit RecordedMath(std::size_t element_bytes) : element_bytes_(element_bytes) {}

  std::size_t element_bytes() const override { return element_bytes_; }
  DevicePointer allocate(std::size_t bytes) override;
  void fill(DevicePointer data, std::int64_t elements, bool is_float32, float middle, float spread) override;
  Step product(const MatrixProduct& product) override;
  StepPair convolution(const Convolution& shape, int batch, const ConvolutionMemory& memory) override;
  StepPair batch_norm(const BatchNorm& shape, int batch, const Activations& data,
                      const NormMemory& memory) override;
  StepPair pooling(const Pooling& shape, int batch, const Activations& data) override;
  StepPair softmax(std::int64_t rows, int width, const Activations& data) override;
  Step zero(DevicePointer data, std::size_t bytes) override;
  Step kernel(const KernelCall& call) override;

  std::vector<std::string> calls;       ///< of steps that ran, in order
  double multiply_adds = 0;             ///< of products and convolutions that ran
  std::uint64_t allocated_bytes = 0;    ///< of all
  std::vector<KernelCall> kernels;      ///< that were made
  std::vector<std::string> complaints;  ///< memory that is not there, or too small

 private:
  void expect_room(const std::string& what, DevicePointer data, std::int64_t elements, std::size_t each);
  void expect_rooms(const std::string& what, const Activations& data, std::int64_t in, std::int64_t out);
  Step noted(std::string name, double work = 0);

  const std::size_t element_bytes_;
  std::map<DevicePointer, std::size_t> blocks_;
  DevicePointer next_ = 1 << 20;
};

}  // namespace commtune::compute
