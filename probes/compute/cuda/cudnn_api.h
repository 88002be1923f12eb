#pragma once
// The part of cuDNN 9's C interface that commtune calls, as cudnn_graph_v9.h, cudnn_ops_v9.h and
// cudnn_cnn_v9.h of cuDNN 9.20.0 declare it: a build needs no headers of cuDNN's. Enumerations are passed as
// int, which is how they are passed. tests/probes/compute compare all of it with those headers where they are
// at hand.

#include <cuda.h>

#include <cstddef>

namespace commtune::compute::cudnn {

using Status = int;
using Handle = struct CudnnTag*;
using TensorDescriptor = struct TensorTag*;
using FilterDescriptor = struct FilterTag*;
using ConvolutionDescriptor = struct ConvolutionTag*;
using PoolingDescriptor = struct PoolingTag*;
using ActivationDescriptor = struct ActivationTag*;

constexpr int kMajor = 9;  ///< of libcudnn.so.9
constexpr Status kSuccess = 0;
enum DataTypeCode : int { kFloat = 0, kBfloat16 = 9 };
enum TensorFormat : int { kNchw = 0, kNhwc = 1 };
enum MathType : int { kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3 };
constexpr int kCrossCorrelation = 1;
constexpr int kNotPropagateNan = 0;
enum BatchNormMode : int { kSpatial = 1, kSpatialPersistent = 2 };
constexpr int kBatchNormOnly = 0;  ///< CUDNN_BATCHNORM_OPS_BN
enum PoolingMode : int { kPoolingMax = 0, kPoolingAverageExcludingPadding = 2 };
constexpr int kSoftmaxAccurate = 1, kSoftmaxModeInstance = 0;

/// cudnnConvolutionFwdAlgoPerf_t, and those of both backward passes, which are alike.
struct AlgorithmPerformance {
  int algorithm;
  Status status;
  float milliseconds;
  std::size_t workspace;
  int determinism;
  int math_type;
  int reserved[3];
};

/// FUNCTION(member, symbol, result, parameters)
#define COMMTUNE_CUDNN_FUNCTIONS(FUNCTION)                                                                   \
  FUNCTION(version, cudnnGetVersion, std::size_t, (void))                                                    \
  FUNCTION(error_text, cudnnGetErrorString, const char*, (Status))                                           \
  FUNCTION(last_error, cudnnGetLastErrorString, void, (char*, std::size_t))                                  \
  FUNCTION(create, cudnnCreate, Status, (Handle*))                                                           \
  FUNCTION(destroy, cudnnDestroy, Status, (Handle))                                                          \
  FUNCTION(set_stream, cudnnSetStream, Status, (Handle, CUstream))                                           \
  FUNCTION(create_tensor, cudnnCreateTensorDescriptor, Status, (TensorDescriptor*))                          \
  FUNCTION(destroy_tensor, cudnnDestroyTensorDescriptor, Status, (TensorDescriptor))                         \
  FUNCTION(set_tensor, cudnnSetTensor4dDescriptor, Status,                                                   \
           (TensorDescriptor, int format, int type, int n, int c, int h, int w))                             \
  FUNCTION(create_filter, cudnnCreateFilterDescriptor, Status, (FilterDescriptor*))                          \
  FUNCTION(destroy_filter, cudnnDestroyFilterDescriptor, Status, (FilterDescriptor))                         \
  FUNCTION(set_filter, cudnnSetFilter4dDescriptor, Status,                                                   \
           (FilterDescriptor, int type, int format, int k, int c, int h, int w))                             \
  FUNCTION(create_convolution, cudnnCreateConvolutionDescriptor, Status, (ConvolutionDescriptor*))           \
  FUNCTION(destroy_convolution, cudnnDestroyConvolutionDescriptor, Status, (ConvolutionDescriptor))          \
  FUNCTION(set_convolution, cudnnSetConvolution2dDescriptor, Status,                                         \
           (ConvolutionDescriptor, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,         \
            int dilation_w, int mode, int type))                                                             \
  FUNCTION(set_convolution_math, cudnnSetConvolutionMathType, Status, (ConvolutionDescriptor, int math))     \
  FUNCTION(find_forward, cudnnFindConvolutionForwardAlgorithmEx, Status,                                     \
           (Handle, TensorDescriptor, const void* x, FilterDescriptor, const void* w, ConvolutionDescriptor, \
            TensorDescriptor, void* y, int requested, int* returned, AlgorithmPerformance*, void* workspace, \
            std::size_t workspace_bytes))                                                                    \
  FUNCTION(find_backward_data, cudnnFindConvolutionBackwardDataAlgorithmEx, Status,                          \
           (Handle, FilterDescriptor, const void* w, TensorDescriptor, const void* dy,                       \
            ConvolutionDescriptor, TensorDescriptor, void* dx, int requested, int* returned,                 \
            AlgorithmPerformance*, void* workspace, std::size_t workspace_bytes))                            \
  FUNCTION(find_backward_filter, cudnnFindConvolutionBackwardFilterAlgorithmEx, Status,                      \
           (Handle, TensorDescriptor, const void* x, TensorDescriptor, const void* dy,                       \
            ConvolutionDescriptor, FilterDescriptor, void* dw, int requested, int* returned,                 \
            AlgorithmPerformance*, void* workspace, std::size_t workspace_bytes))                            \
  FUNCTION(convolution_forward, cudnnConvolutionForward, Status,                                             \
           (Handle, const void* alpha, TensorDescriptor, const void* x, FilterDescriptor, const void* w,     \
            ConvolutionDescriptor, int algorithm, void* workspace, std::size_t workspace_bytes,              \
            const void* beta, TensorDescriptor, void* y))                                                    \
  FUNCTION(convolution_backward_data, cudnnConvolutionBackwardData, Status,                                  \
           (Handle, const void* alpha, FilterDescriptor, const void* w, TensorDescriptor, const void* dy,    \
            ConvolutionDescriptor, int algorithm, void* workspace, std::size_t workspace_bytes,              \
            const void* beta, TensorDescriptor, void* dx))                                                   \
  FUNCTION(convolution_backward_filter, cudnnConvolutionBackwardFilter, Status,                              \
           (Handle, const void* alpha, TensorDescriptor, const void* x, TensorDescriptor, const void* dy,    \
            ConvolutionDescriptor, int algorithm, void* workspace, std::size_t workspace_bytes,              \
            const void* beta, FilterDescriptor, void* dw))                                                   \
  FUNCTION(convolution_backward_bias, cudnnConvolutionBackwardBias, Status,                                  \
           (Handle, const void* alpha, TensorDescriptor, const void* dy, const void* beta, TensorDescriptor, \
            void* db))                                                                                       \
  FUNCTION(add_tensor, cudnnAddTensor, Status,                                                               \
           (Handle, const void* alpha, TensorDescriptor, const void* a, const void* beta, TensorDescriptor,  \
            void* c))                                                                                        \
  FUNCTION(batch_norm_forward_workspace, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, Status,   \
           (Handle, int mode, int operations, TensorDescriptor x, TensorDescriptor z, TensorDescriptor y,    \
            TensorDescriptor scale, ActivationDescriptor, std::size_t*))                                     \
  FUNCTION(batch_norm_backward_workspace, cudnnGetBatchNormalizationBackwardExWorkspaceSize, Status,         \
           (Handle, int mode, int operations, TensorDescriptor x, TensorDescriptor y, TensorDescriptor dy,   \
            TensorDescriptor dz, TensorDescriptor dx, TensorDescriptor scale, ActivationDescriptor,          \
            std::size_t*))                                                                                   \
  FUNCTION(batch_norm_reserve, cudnnGetBatchNormalizationTrainingExReserveSpaceSize, Status,                 \
           (Handle, int mode, int operations, ActivationDescriptor, TensorDescriptor x, std::size_t*))       \
  FUNCTION(                                                                                                  \
      batch_norm_forward, cudnnBatchNormalizationForwardTrainingEx, Status,                                  \
      (Handle, int mode, int operations, const void* alpha, const void* beta, TensorDescriptor,              \
       const void* x, TensorDescriptor, const void* z, TensorDescriptor, void* y, TensorDescriptor,          \
       const void* scale, const void* bias, double average_factor, void* running_mean,                       \
       void* running_variance, double epsilon, void* saved_mean, void* saved_inverse, ActivationDescriptor,  \
       void* workspace, std::size_t workspace_bytes, void* reserve, std::size_t reserve_bytes))              \
  FUNCTION(batch_norm_backward, cudnnBatchNormalizationBackwardEx, Status,                                   \
           (Handle, int mode, int operations, const void* alpha_data, const void* beta_data,                 \
            const void* alpha_parameters, const void* beta_parameters, TensorDescriptor, const void* x,      \
            TensorDescriptor, const void* y, TensorDescriptor, const void* dy, TensorDescriptor, void* dz,   \
            TensorDescriptor, void* dx, TensorDescriptor, const void* scale, const void* bias,               \
            void* scale_gradient, void* bias_gradient, double epsilon, const void* saved_mean,               \
            const void* saved_inverse, ActivationDescriptor, void* workspace, std::size_t workspace_bytes,   \
            void* reserve, std::size_t reserve_bytes))                                                       \
  FUNCTION(create_pooling, cudnnCreatePoolingDescriptor, Status, (PoolingDescriptor*))                       \
  FUNCTION(destroy_pooling, cudnnDestroyPoolingDescriptor, Status, (PoolingDescriptor))                      \
  FUNCTION(set_pooling, cudnnSetPooling2dDescriptor, Status,                                                 \
           (PoolingDescriptor, int mode, int nan, int window_h, int window_w, int pad_h, int pad_w,          \
            int stride_h, int stride_w))                                                                     \
  FUNCTION(pooling_forward, cudnnPoolingForward, Status,                                                     \
           (Handle, PoolingDescriptor, const void* alpha, TensorDescriptor, const void* x, const void* beta, \
            TensorDescriptor, void* y))                                                                      \
  FUNCTION(pooling_backward, cudnnPoolingBackward, Status,                                                   \
           (Handle, PoolingDescriptor, const void* alpha, TensorDescriptor, const void* y, TensorDescriptor, \
            const void* dy, TensorDescriptor, const void* x, const void* beta, TensorDescriptor, void* dx))  \
  FUNCTION(softmax_forward, cudnnSoftmaxForward, Status,                                                     \
           (Handle, int algorithm, int mode, const void* alpha, TensorDescriptor, const void* x,             \
            const void* beta, TensorDescriptor, void* y))                                                    \
  FUNCTION(softmax_backward, cudnnSoftmaxBackward, Status,                                                   \
           (Handle, int algorithm, int mode, const void* alpha, TensorDescriptor, const void* y,             \
            TensorDescriptor, const void* dy, const void* beta, TensorDescriptor, void* dx))

struct Functions {
// A declaration. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define COMMTUNE_CUDNN_MEMBER(MEMBER, SYMBOL, RESULT, PARAMETERS) RESULT(*MEMBER) PARAMETERS = nullptr;
  COMMTUNE_CUDNN_FUNCTIONS(COMMTUNE_CUDNN_MEMBER)
#undef COMMTUNE_CUDNN_MEMBER
};

}  // namespace commtune::compute::cudnn
