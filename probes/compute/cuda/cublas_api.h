#pragma once
// The part of cuBLAS' C interface that commtune calls, as cublas_api.h of cuBLAS 13.1.1 declares it (12.x is
// the same): a build needs no headers of cuBLAS'. Enumerations are passed as int, which is how they are
// passed. tests/probes/compute compare all of it with that header where it is at hand.

#include <cuda.h>

#include <cstddef>

namespace commtune::compute::cublas {

using Status = int;
using Handle = struct CublasTag*;

constexpr Status kSuccess = 0;
enum Operation : int { kAsItIs = 0, kTransposed = 1 };
enum DataTypeCode : int { kFloat = 0, kBfloat16 = 14 };             ///< CUDA_R_32F, CUDA_R_16BF
enum ComputeType : int { kCompute32F = 68, kCompute32FTf32 = 77 };  ///< CUBLAS_COMPUTE_32F, ..._FAST_TF32
constexpr int kGemmDefault = -1;

/// FUNCTION(member, symbol, result, parameters)
#define COMMTUNE_CUBLAS_FUNCTIONS(FUNCTION)                                                                  \
  FUNCTION(create, cublasCreate_v2, Status, (Handle*))                                                       \
  FUNCTION(destroy, cublasDestroy_v2, Status, (Handle))                                                      \
  FUNCTION(version, cublasGetVersion_v2, Status, (Handle, int*))                                             \
  FUNCTION(set_stream, cublasSetStream_v2, Status, (Handle, CUstream))                                       \
  FUNCTION(set_workspace, cublasSetWorkspace_v2, Status, (Handle, void*, std::size_t))                       \
  FUNCTION(error_text, cublasGetStatusString, const char*, (Status))                                         \
  FUNCTION(multiply, cublasGemmEx, Status,                                                                   \
           (Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a, \
            int a_type, int lda, const void* b, int b_type, int ldb, const void* beta, void* c, int c_type,  \
            int ldc, int compute_type, int algorithm))                                                       \
  FUNCTION(multiply_many, cublasGemmStridedBatchedEx, Status,                                                \
           (Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a, \
            int a_type, int lda, long long a_stride, const void* b, int b_type, int ldb, long long b_stride, \
            const void* beta, void* c, int c_type, int ldc, long long c_stride, int count, int compute_type, \
            int algorithm))

struct Functions {
// A declaration. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define COMMTUNE_CUBLAS_MEMBER(MEMBER, SYMBOL, RESULT, PARAMETERS) RESULT(*MEMBER) PARAMETERS = nullptr;
  COMMTUNE_CUBLAS_FUNCTIONS(COMMTUNE_CUBLAS_MEMBER)
#undef COMMTUNE_CUBLAS_MEMBER
};

}  // namespace commtune::compute::cublas
