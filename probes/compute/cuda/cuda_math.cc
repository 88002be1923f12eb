#include "probes/compute/cuda/cuda_math.h"

#include <fmt/format.h>

#include <utility>

#include "executor/memory/cuda/kernel_images.h"
#include "perfmodel/base/error.h"
#include "probes/compute/cuda/kernel_images.h"

namespace commtune::compute {
namespace {

// What PyTorch gives cuBLAS on Hopper (CUDABlas.cpp): with less, some kernels are not chosen.
constexpr std::size_t kCublasWorkspace = std::size_t{32} << 20;

}  // namespace

CudaMath::CudaMath(GpuLibraries libraries, Precision precision)
    : libraries_(std::move(libraries)),
      precision_(precision),
      format_(precision == Precision::kFp32 ? cudnn::kNchw : cudnn::kNhwc),
      cudnn_type_(precision == Precision::kBf16 ? cudnn::kBfloat16 : cudnn::kFloat),
      cublas_type_(precision == Precision::kBf16 ? cublas::kBfloat16 : cublas::kFloat),
      compute_type_(precision == Precision::kTf32 ? cublas::kCompute32FTf32 : cublas::kCompute32F),
      kernels_(images::profile()),
      elementwise_(cuda::images::elementwise()),
      busy_(cuda::images::busy()) {
  check(libraries_.cudnn.create(&cudnn_), "cudnnCreate");
  check(libraries_.cudnn.set_stream(cudnn_, stream_.handle()), "cudnnSetStream");
  expect(libraries_.cublas, libraries_.cublas.create(&cublas_), "cublasCreate");
  expect(libraries_.cublas, libraries_.cublas.set_stream(cublas_, stream_.handle()), "cublasSetStream");
  expect(libraries_.cublas,
         libraries_.cublas.set_workspace(cublas_, at(allocate(kCublasWorkspace)), kCublasWorkspace),
         "cublasSetWorkspace");
}

CudaMath::~CudaMath() {
  cuda::driver().synchronize_stream(stream_.handle());
  if (cublas_ != nullptr) libraries_.cublas.destroy(cublas_);
  if (cudnn_ != nullptr) libraries_.cudnn.destroy(cudnn_);
  for (const CUdeviceptr memory : memory_) cuda::driver().release(memory);
}

std::string CudaMath::versions() const {
  int version = 0;
  expect(libraries_.cublas, libraries_.cublas.version(cublas_, &version), "cublasGetVersion");
  return fmt::format("cuDNN {}, cuBLAS {}", cudnn_version(libraries_.cudnn.version()),
                     cublas_version(version));
}

std::string CudaMath::layout() const {
  std::string layout = format_ == cudnn::kNhwc ? "NHWC" : "NCHW";
  if (in_other_layout_ == 0) return layout;
  return fmt::format("{} ({} {} as NCHW)", layout, in_other_layout_,
                     in_other_layout_ == 1 ? "call" : "calls");
}

DevicePointer CudaMath::allocate(std::size_t bytes) {
  CUdeviceptr memory = 0;
  const CUresult result = cuda::driver().allocate(&memory, bytes == 0 ? 1 : bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the GPU has no {} bytes left: take a smaller --batch", bytes));
  }
  cuda::expect(result, "cuMemAlloc");
  memory_.push_back(memory);
  return memory;
}

void CudaMath::fill(DevicePointer data, std::int64_t elements, bool is_float32, float middle, float spread) {
  constexpr std::uint32_t kBlock = 256;
  kernel({is_float32 ? "commtune_profile_fill_fp32" : "commtune_profile_fill_bf16",
          blocks_for(elements, kBlock),
          kBlock,
          {data, static_cast<std::uint64_t>(elements), argument_of(middle), argument_of(spread)}})();
}

/// cuBLAS has columns one behind the other: its matrices are ours transposed, and c^T = op(b)^T op(a)^T.
Step CudaMath::product(const MatrixProduct& p) {
  const int transpose_b = p.transpose_b ? cublas::kTransposed : cublas::kAsItIs;
  const int transpose_a = p.transpose_a ? cublas::kTransposed : cublas::kAsItIs;
  const int b_width = p.transpose_b ? p.inner : p.columns;
  const int a_width = p.transpose_a ? p.rows : p.inner;
  Step step;
  if (p.count == 1) {
    step = [=, this] {
      const float alpha = p.factor, beta = 0;
      expect(
          libraries_.cublas,
          libraries_.cublas.multiply(cublas_, transpose_b, transpose_a, p.columns, p.rows, p.inner, &alpha,
                                     at(p.b), cublas_type_, b_width, at(p.a), cublas_type_, a_width, &beta,
                                     at(p.c), cublas_type_, p.columns, compute_type_, cublas::kGemmDefault),
          "cublasGemmEx");
    };
  } else {
    const long long a_stride = 1LL * p.rows * p.inner, b_stride = 1LL * p.inner * p.columns;
    const long long c_stride = 1LL * p.rows * p.columns;
    step = [=, this] {
      const float alpha = p.factor, beta = 0;
      expect(libraries_.cublas,
             libraries_.cublas.multiply_many(
                 cublas_, transpose_b, transpose_a, p.columns, p.rows, p.inner, &alpha, at(p.b), cublas_type_,
                 b_width, b_stride, at(p.a), cublas_type_, a_width, a_stride, &beta, at(p.c), cublas_type_,
                 p.columns, c_stride, p.count, compute_type_, cublas::kGemmDefault),
             "cublasGemmStridedBatchedEx");
    };
  }
  step();
  return step;
}

void CudaMath::keep_busy(Seconds time) const {
  auto nanoseconds = static_cast<std::uint64_t>(time.count() * 1e9);
  void* argument = &nanoseconds;
  cuda::expect(cuda::driver().launch(busy_.function("commtune_busy"), 1, 1, 1, 1, 1, 1, 0, stream_.handle(),
                                     &argument, nullptr),
               "commtune_busy");
}

Step CudaMath::zero(DevicePointer data, std::size_t bytes) {
  return [this, data, bytes] {
    cuda::expect(cuda::driver().set_bytes(data, 0, bytes, stream_.handle()), "cuMemsetD8Async");
  };
}

Step CudaMath::kernel(const KernelCall& call) {
  const bool is_own = call.name.starts_with("commtune_profile_");
  const CUfunction function = (is_own ? kernels_ : elementwise_).function(call.name.c_str());
  return [this, function, call] {
    // The driver reads each argument from an address, as many bytes as the kernel's parameter has.
    std::vector<void*> addresses;
    addresses.reserve(call.arguments.size());
    for (const std::uint64_t& argument : call.arguments)
      addresses.push_back(const_cast<std::uint64_t*>(&argument));
    cuda::expect(cuda::driver().launch(function, call.grid, 1, 1, call.block, 1, 1, 0, stream_.handle(),
                                       addresses.data(), nullptr),
                 call.name.c_str());
  };
}

}  // namespace commtune::compute
