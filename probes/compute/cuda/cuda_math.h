#pragma once
// cuDNN, cuBLAS and kernels of commtune's own on a stream of one GPU. For the sources of what uses GPUs.

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "executor/memory/cuda/device.h"
#include "probes/compute/cuda/gpu_libraries.h"
#include "probes/compute/cuda/gpu_math.h"
#include "probes/compute/cuda/precision.h"

namespace commtune::compute {

/// As libraries take an address of the GPU's memory.
inline void* at(DevicePointer pointer) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));  // NOLINT(performance-no-int-to-ptr)
}

/// Images lie as NHWC where tensor cores compute, which is how they want them, and as NCHW in fp32 and for
/// what cuDNN refuses otherwise.
class CudaMath final : public GpuMath {
 public:
  /// The GPU is current. libraries.why_not is empty.
  CudaMath(GpuLibraries libraries, Precision precision);
  ~CudaMath() override;
  CudaMath(const CudaMath&) = delete;
  CudaMath& operator=(const CudaMath&) = delete;

  const cuda::Stream& stream() const { return stream_; }
  /// What is put on the stream from now on waits for so long.
  void keep_busy(Seconds time) const;
  std::string versions() const;  ///< "cuDNN 9.20.0, cuBLAS 13.1.1"
  std::string layout() const;    ///< "NHWC", or "NHWC (1 call as NCHW)"

  std::size_t element_bytes() const override { return precision_ == Precision::kBf16 ? 2 : 4; }
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

 private:
  template <typename Descriptor>
  using Owned = std::shared_ptr<std::remove_pointer_t<Descriptor>>;  // by the steps that use it
  using Tensor = Owned<cudnn::TensorDescriptor>;

  /// One direction of a convolution, as cuDNN found it fastest.
  struct Algorithm {
    int number = 0, math_type = 0;
    std::size_t workspace = 0;
  };
  struct Algorithms {
    Algorithm forward, backward_data, backward_filter;
  };
  struct ConvolutionCall;

  void check(cudnn::Status status, const char* call) const { expect(libraries_.cudnn, status, call); }
  /// Of activations' type.
  Tensor tensor(cudnn::TensorFormat format, int n, int c, int h, int w) const;
  /// One float32, or number of the precision's type, for each channel.
  Tensor channels(int count, int type) const;
  Owned<cudnn::ConvolutionDescriptor> convolution_descriptor(const Convolution& shape, int math_type) const;
  int math_type() const;
  Algorithm fastest(const std::vector<cudnn::AlgorithmPerformance>& found, const char* call) const;
  Algorithms find(const ConvolutionCall& call, const Convolution& shape);
  Algorithms algorithms_for(const Convolution& shape, const ConvolutionCall& call);
  void add_bias(StepPair& steps, const ConvolutionCall& call, int channel_count);
  /// What make(format) makes in the layout of the precision, or else as NCHW.
  template <typename Make>
  StepPair in_some_layout(const Make& make);
  StepPair convolution_in(cudnn::TensorFormat format, const Convolution& shape, int batch,
                          const ConvolutionMemory& memory);
  StepPair batch_norm_in(cudnn::TensorFormat format, cudnn::BatchNormMode mode, const BatchNorm& shape,
                         int batch, const Activations& data, const NormMemory& memory);
  StepPair pooling_in(cudnn::TensorFormat format, const Pooling& shape, int batch, const Activations& data);

  const GpuLibraries libraries_;
  const Precision precision_;
  const cudnn::TensorFormat format_;
  const int cudnn_type_, cublas_type_, compute_type_;
  cuda::Module kernels_, elementwise_, busy_;
  cuda::Stream stream_;
  std::vector<CUdeviceptr> memory_;
  cudnn::Handle cudnn_ = nullptr;
  cublas::Handle cublas_ = nullptr;
  DevicePointer convolution_workspace_ = 0;  // shared: steps are on one stream, one after the other
  std::vector<std::pair<Convolution, Algorithms>> algorithms_;  // of the layout that worked
  int in_other_layout_ = 0;                                     // calls
};

}  // namespace commtune::compute
