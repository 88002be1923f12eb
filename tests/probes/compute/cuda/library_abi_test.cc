// What commtune declares of cuDNN and cuBLAS is what their own headers declare, where those are at hand:
// parameters one by one, and the values of enumerations. Without them there is nothing to compare.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "probes/compute/cuda/cublas_api.h"
#include "probes/compute/cuda/cudnn_api.h"
#include "probes/compute/cuda/gpu_libraries.h"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#endif

namespace commtune::compute {
namespace {

/// Passed alike: pointers as pointers, enumerations as int, all else as the same type.
template <typename Ours, typename Theirs>
constexpr bool is_passed_alike() {
  if constexpr (std::is_pointer_v<Ours>) {
    return std::is_pointer_v<Theirs>;
  } else if constexpr (std::is_enum_v<Theirs>) {
    return std::is_same_v<Ours, int> && sizeof(Theirs) == sizeof(int);
  } else {
    return std::is_same_v<Ours, Theirs>;
  }
}

template <typename Ours, typename Theirs>
struct Alike : std::false_type {};
template <typename R, typename... P, typename S, typename... Q>
struct Alike<R (*)(P...), S (*)(Q...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(P) != sizeof...(Q)) {
      return false;
    } else {
      return (std::is_void_v<R> ? std::is_void_v<S> : is_passed_alike<R, S>()) &&
             (is_passed_alike<P, Q>() && ... && true);
    }
  }();
};

#define COMMTUNE_SAME(MEMBER, SYMBOL, RESULT, PARAMETERS) \
  static_assert(Alike<decltype(Functions::MEMBER), decltype(&::SYMBOL)>::value, #SYMBOL);

#if __has_include(<cudnn.h>)
namespace cudnn_is {
using cudnn::Functions;
COMMTUNE_CUDNN_FUNCTIONS(COMMTUNE_SAME)
static_assert(CUDNN_MAJOR == cudnn::kMajor);
static_assert(CUDNN_STATUS_SUCCESS == cudnn::kSuccess);
static_assert(CUDNN_DATA_FLOAT == static_cast<int>(cudnn::kFloat));
static_assert(CUDNN_DATA_BFLOAT16 == static_cast<int>(cudnn::kBfloat16));
static_assert(CUDNN_TENSOR_NCHW == static_cast<int>(cudnn::kNchw));
static_assert(CUDNN_TENSOR_NHWC == static_cast<int>(cudnn::kNhwc));
static_assert(CUDNN_DEFAULT_MATH == static_cast<int>(cudnn::kDefaultMath));
static_assert(CUDNN_TENSOR_OP_MATH == static_cast<int>(cudnn::kTensorOpMath));
static_assert(CUDNN_FMA_MATH == static_cast<int>(cudnn::kFmaMath));
static_assert(CUDNN_CROSS_CORRELATION == cudnn::kCrossCorrelation);
static_assert(CUDNN_NOT_PROPAGATE_NAN == cudnn::kNotPropagateNan);
static_assert(CUDNN_BATCHNORM_SPATIAL == static_cast<int>(cudnn::kSpatial));
static_assert(CUDNN_BATCHNORM_SPATIAL_PERSISTENT == static_cast<int>(cudnn::kSpatialPersistent));
static_assert(CUDNN_BATCHNORM_OPS_BN == cudnn::kBatchNormOnly);
static_assert(CUDNN_POOLING_MAX == static_cast<int>(cudnn::kPoolingMax));
static_assert(CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING ==
              static_cast<int>(cudnn::kPoolingAverageExcludingPadding));
static_assert(CUDNN_SOFTMAX_ACCURATE == cudnn::kSoftmaxAccurate);
static_assert(CUDNN_SOFTMAX_MODE_INSTANCE == cudnn::kSoftmaxModeInstance);

template <typename Theirs>
constexpr bool lies_alike() {
  using Ours = cudnn::AlgorithmPerformance;
  return sizeof(Ours) == sizeof(Theirs) && offsetof(Ours, algorithm) == offsetof(Theirs, algo) &&
         offsetof(Ours, status) == offsetof(Theirs, status) &&
         offsetof(Ours, milliseconds) == offsetof(Theirs, time) &&
         offsetof(Ours, workspace) == offsetof(Theirs, memory) &&
         offsetof(Ours, determinism) == offsetof(Theirs, determinism) &&
         offsetof(Ours, math_type) == offsetof(Theirs, mathType);
}
static_assert(lies_alike<cudnnConvolutionFwdAlgoPerf_t>());
static_assert(lies_alike<cudnnConvolutionBwdDataAlgoPerf_t>());
static_assert(lies_alike<cudnnConvolutionBwdFilterAlgoPerf_t>());
}  // namespace cudnn_is
#endif

#if __has_include(<cublas_v2.h>)
namespace cublas_is {
using cublas::Functions;
// Its C++ overloads of these two names take other types: the C function is named by its type.
using Multiply = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                    const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                                    int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                                    cublasGemmAlgo_t);
using MultiplyMany = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                        const void*, const void*, cudaDataType, int, long long int,
                                        const void*, cudaDataType, int, long long int, const void*, void*,
                                        cudaDataType, int, long long int, int, cublasComputeType_t,
                                        cublasGemmAlgo_t);
[[maybe_unused]] const Multiply kMultiply = ::cublasGemmEx;
[[maybe_unused]] const MultiplyMany kMultiplyMany = ::cublasGemmStridedBatchedEx;
static_assert(Alike<decltype(Functions::multiply), Multiply>::value);
static_assert(Alike<decltype(Functions::multiply_many), MultiplyMany>::value);
static_assert(Alike<decltype(Functions::create), decltype(&::cublasCreate_v2)>::value);
static_assert(Alike<decltype(Functions::destroy), decltype(&::cublasDestroy_v2)>::value);
static_assert(Alike<decltype(Functions::version), decltype(&::cublasGetVersion_v2)>::value);
static_assert(Alike<decltype(Functions::set_stream), decltype(&::cublasSetStream_v2)>::value);
static_assert(Alike<decltype(Functions::set_workspace), decltype(&::cublasSetWorkspace_v2)>::value);
static_assert(Alike<decltype(Functions::error_text), decltype(&::cublasGetStatusString)>::value);
static_assert(CUBLAS_STATUS_SUCCESS == cublas::kSuccess);
static_assert(CUBLAS_OP_N == static_cast<int>(cublas::kAsItIs));
static_assert(CUBLAS_OP_T == static_cast<int>(cublas::kTransposed));
static_assert(CUDA_R_32F == static_cast<int>(cublas::kFloat));
static_assert(CUDA_R_16BF == static_cast<int>(cublas::kBfloat16));
static_assert(CUBLAS_COMPUTE_32F == static_cast<int>(cublas::kCompute32F));
static_assert(CUBLAS_COMPUTE_32F_FAST_TF32 == static_cast<int>(cublas::kCompute32FTf32));
static_assert(CUBLAS_GEMM_DEFAULT == cublas::kGemmDefault);
}  // namespace cublas_is
#endif

TEST(LibraryAbi, IsThatOfTheLibrariesHeaders) {
#if __has_include(<cudnn.h>) && __has_include(<cublas_v2.h>)
  SUCCEED();  // as it was compiled
#else
  GTEST_SKIP()
      << "cudnn.h and cublas_v2.h are not at hand (CMake: COMMTUNE_CUDNN_INCLUDE, COMMTUNE_CUBLAS_INCLUDE)";
#endif
}

TEST(LibraryVersions, ArePrintedAsTheirMakersDo) {
  EXPECT_EQ(cudnn_version(92000), "9.20.0");
  EXPECT_EQ(cudnn_version(91001), "9.10.1");
  EXPECT_EQ(cublas_version(130101), "13.1.1");
}

/// A folder without libraries: one line says what to install.
TEST(LoadGpuLibraries, SaysWhatToInstall) {
  const GpuLibraries libraries = load_gpu_libraries({"/nonexistent"});
  if (libraries.why_not.empty()) GTEST_SKIP() << "cuDNN and cuBLAS are on this machine's library path";
  EXPECT_NE(libraries.why_not.find("PyPI: nvidia-"), std::string::npos) << libraries.why_not;
  EXPECT_NE(libraries.why_not.find("LD_LIBRARY_PATH"), std::string::npos) << libraries.why_not;
  EXPECT_EQ(libraries.why_not.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace commtune::compute
