// What CudaMath computes with cuDNN.
#include <fmt/format.h>

#include <algorithm>

#include "perfmodel/base/error.h"
#include "probes/compute/cuda/cuda_math.h"

namespace commtune::compute {
namespace {

constexpr float kOne = 1, kZero = 0;
constexpr double kEpsilon = 1e-5;  // of normalisations, as in PyTorch; no time depends on it
// What an algorithm may take for itself: enough for the fast ones, and small beside activations.
constexpr std::size_t kConvolutionWorkspace = std::size_t{1} << 30;

}  // namespace

/// A convolution's descriptors and memory.
struct CudaMath::ConvolutionCall {
  Tensor x, y;
  Owned<cudnn::FilterDescriptor> w;
  ConvolutionMemory memory;
};

CudaMath::Tensor CudaMath::tensor(cudnn::TensorFormat format, int n, int c, int h, int w) const {
  cudnn::TensorDescriptor made = nullptr;
  check(libraries_.cudnn.create_tensor(&made), "cudnnCreateTensorDescriptor");
  Tensor owned(made, libraries_.cudnn.destroy_tensor);
  check(libraries_.cudnn.set_tensor(made, format, cudnn_type_, n, c, h, w), "cudnnSetTensor4dDescriptor");
  return owned;
}

CudaMath::Tensor CudaMath::channels(int count, int type) const {
  cudnn::TensorDescriptor made = nullptr;
  check(libraries_.cudnn.create_tensor(&made), "cudnnCreateTensorDescriptor");
  Tensor owned(made, libraries_.cudnn.destroy_tensor);
  check(libraries_.cudnn.set_tensor(made, cudnn::kNchw, type, 1, count, 1, 1), "cudnnSetTensor4dDescriptor");
  return owned;
}

template <typename Make>
StepPair CudaMath::in_some_layout(const Make& make) {
  if (format_ == cudnn::kNchw) return make(format_);
  std::string refused;
  try {
    return make(format_);
  } catch (const Error& error) {
    refused = error.what();
  }
  stream_.synchronize();  // what failed on the device, and not in the call, is said here
  try {
    StepPair steps = make(cudnn::kNchw);
    ++in_other_layout_;
    return steps;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("as NHWC: {}; as NCHW: {}", refused, error.what()));
  }
}

// --- convolutions ---------------------------------------------------------------------------------------

/// As PyTorch sets it: fused multiply-adds alone in fp32; TF32 is cuDNN's default for float32.
int CudaMath::math_type() const {
  switch (precision_) {
    case Precision::kFp32:
      return cudnn::kFmaMath;
    case Precision::kTf32:
      return cudnn::kDefaultMath;
    case Precision::kBf16:
      return cudnn::kTensorOpMath;
  }
  return cudnn::kDefaultMath;
}

CudaMath::Owned<cudnn::ConvolutionDescriptor> CudaMath::convolution_descriptor(const Convolution& c,
                                                                               int math) const {
  cudnn::ConvolutionDescriptor made = nullptr;
  check(libraries_.cudnn.create_convolution(&made), "cudnnCreateConvolutionDescriptor");
  Owned<cudnn::ConvolutionDescriptor> owned(made, libraries_.cudnn.destroy_convolution);
  check(libraries_.cudnn.set_convolution(made, c.padding, c.padding, c.stride, c.stride, 1, 1,
                                         cudnn::kCrossCorrelation, cudnn::kFloat),
        "cudnnSetConvolution2dDescriptor");
  check(libraries_.cudnn.set_convolution_math(made, math), "cudnnSetConvolutionMathType");
  return owned;
}

CudaMath::Algorithm CudaMath::fastest(const std::vector<cudnn::AlgorithmPerformance>& found,
                                      const char* call) const {
  for (const cudnn::AlgorithmPerformance& one : found) {
    if (one.status != cudnn::kSuccess) continue;
    const int math = precision_ == Precision::kFp32 ? math_type() : one.math_type;
    return {one.algorithm, math, one.workspace};
  }
  throw Error(ErrorCode::kUnavailable,
              fmt::format("{}: no algorithm for this shape in {}", call, to_string(precision_)));
}

CudaMath::Algorithms CudaMath::find(const ConvolutionCall& call, const Convolution& shape) {
  if (convolution_workspace_ == 0) convolution_workspace_ = allocate(kConvolutionWorkspace);
  const auto descriptor = convolution_descriptor(shape, math_type());
  const Activations& data = call.memory.data;
  void* const space = at(convolution_workspace_);
  constexpr int kMost = 8;  // algorithms of one direction, at most
  const auto tried = [&](const char* name, const auto& run) {
    std::vector<cudnn::AlgorithmPerformance> found(kMost);
    int count = 0;
    check(run(&count, found.data()), name);
    found.resize(static_cast<std::size_t>(std::clamp(count, 0, kMost)));
    return fastest(found, name);
  };
  const cudnn::Functions& cudnn = libraries_.cudnn;
  stream_.synchronize();
  Algorithms best;
  best.forward = tried("cudnnFindConvolutionForwardAlgorithmEx", [&](int* count, auto* found) {
    return cudnn.find_forward(cudnn_, call.x.get(), at(data.input), call.w.get(), at(call.memory.weights),
                              descriptor.get(), call.y.get(), at(data.output), kMost, count, found, space,
                              kConvolutionWorkspace);
  });
  best.backward_filter = tried("cudnnFindConvolutionBackwardFilterAlgorithmEx", [&](int* count, auto* found) {
    return cudnn.find_backward_filter(
        cudnn_, call.x.get(), at(data.input), call.y.get(), at(data.output_gradient), descriptor.get(),
        call.w.get(), at(call.memory.weight_gradient), kMost, count, found, space, kConvolutionWorkspace);
  });
  if (data.input_gradient == 0) return best;
  best.backward_data = tried("cudnnFindConvolutionBackwardDataAlgorithmEx", [&](int* count, auto* found) {
    return cudnn.find_backward_data(cudnn_, call.w.get(), at(call.memory.weights), call.y.get(),
                                    at(data.output_gradient), descriptor.get(), call.x.get(),
                                    at(data.input_gradient), kMost, count, found, space,
                                    kConvolutionWorkspace);
  });
  return best;
}

/// Each shape is tried once.
CudaMath::Algorithms CudaMath::algorithms_for(const Convolution& shape, const ConvolutionCall& call) {
  const auto known = std::find_if(algorithms_.begin(), algorithms_.end(),
                                  [&](const auto& one) { return one.first == shape; });
  if (known != algorithms_.end()) return known->second;
  return algorithms_.emplace_back(shape, find(call, shape)).second;
}

void CudaMath::add_bias(StepPair& steps, const ConvolutionCall& call, int channel_count) {
  const Tensor bias = channels(channel_count, cudnn_type_);
  const ConvolutionMemory& memory = call.memory;
  steps.forward = [this, bias, memory, y = call.y, before = std::move(steps.forward)] {
    before();
    check(libraries_.cudnn.add_tensor(cudnn_, &kOne, bias.get(), at(memory.bias), &kOne, y.get(),
                                      at(memory.data.output)),
          "cudnnAddTensor");
  };
  steps.backward = [this, bias, memory, y = call.y, before = std::move(steps.backward)] {
    before();
    check(libraries_.cudnn.convolution_backward_bias(cudnn_, &kOne, y.get(), at(memory.data.output_gradient),
                                                     &kZero, bias.get(), at(memory.bias_gradient)),
          "cudnnConvolutionBackwardBias");
  };
}

StepPair CudaMath::convolution(const Convolution& c, int batch, const ConvolutionMemory& memory) {
  return in_some_layout([&](cudnn::TensorFormat format) { return convolution_in(format, c, batch, memory); });
}

StepPair CudaMath::convolution_in(cudnn::TensorFormat format, const Convolution& c, int batch,
                                  const ConvolutionMemory& memory) {
  cudnn::FilterDescriptor filter = nullptr;
  check(libraries_.cudnn.create_filter(&filter), "cudnnCreateFilterDescriptor");
  const Owned<cudnn::FilterDescriptor> w(filter, libraries_.cudnn.destroy_filter);
  check(libraries_.cudnn.set_filter(filter, cudnn_type_, format, c.out, c.in, c.kernel, c.kernel),
        "cudnnSetFilter4dDescriptor");
  const ConvolutionCall call{tensor(format, batch, c.in, c.size, c.size),
                             tensor(format, batch, c.out, c.out_size(), c.out_size()), w, memory};
  const Algorithms best = algorithms_for(c, call);
  StepPair steps;
  steps.forward = [this, call, one = best.forward, how = convolution_descriptor(c, best.forward.math_type)] {
    check(libraries_.cudnn.convolution_forward(cudnn_, &kOne, call.x.get(), at(call.memory.data.input),
                                               call.w.get(), at(call.memory.weights), how.get(), one.number,
                                               at(convolution_workspace_), one.workspace, &kZero,
                                               call.y.get(), at(call.memory.data.output)),
          "cudnnConvolutionForward");
  };
  steps.backward = [this, call, data = best.backward_data, filter_one = best.backward_filter,
                    data_how = convolution_descriptor(c, best.backward_data.math_type),
                    filter_how = convolution_descriptor(c, best.backward_filter.math_type)] {
    const Activations& at_hand = call.memory.data;
    if (at_hand.input_gradient != 0) {
      check(libraries_.cudnn.convolution_backward_data(
                cudnn_, &kOne, call.w.get(), at(call.memory.weights), call.y.get(),
                at(at_hand.output_gradient), data_how.get(), data.number, at(convolution_workspace_),
                data.workspace, &kZero, call.x.get(), at(at_hand.input_gradient)),
            "cudnnConvolutionBackwardData");
    }
    check(libraries_.cudnn.convolution_backward_filter(
              cudnn_, &kOne, call.x.get(), at(at_hand.input), call.y.get(), at(at_hand.output_gradient),
              filter_how.get(), filter_one.number, at(convolution_workspace_), filter_one.workspace, &kZero,
              call.w.get(), at(call.memory.weight_gradient)),
          "cudnnConvolutionBackwardFilter");
  };
  if (c.bias) add_bias(steps, call, c.out);
  steps.forward();
  steps.backward();
  return steps;
}

// --- normalisation, pooling, softmax --------------------------------------------------------------------

StepPair CudaMath::batch_norm_in(cudnn::TensorFormat format, cudnn::BatchNormMode mode, const BatchNorm& n,
                                 int batch, const Activations& data, const NormMemory& memory) {
  const cudnn::Functions& cudnn = libraries_.cudnn;
  const Tensor x = tensor(format, batch, n.channels, n.size, n.size);
  const Tensor scale = channels(n.channels, cudnn::kFloat);
  std::size_t forward_bytes = 0, backward_bytes = 0, reserve_bytes = 0;
  constexpr int kOnly = cudnn::kBatchNormOnly;
  check(cudnn.batch_norm_forward_workspace(cudnn_, mode, kOnly, x.get(), nullptr, x.get(), scale.get(),
                                           nullptr, &forward_bytes),
        "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize");
  check(cudnn.batch_norm_backward_workspace(cudnn_, mode, kOnly, x.get(), x.get(), x.get(), nullptr, x.get(),
                                            scale.get(), nullptr, &backward_bytes),
        "cudnnGetBatchNormalizationBackwardExWorkspaceSize");
  check(cudnn.batch_norm_reserve(cudnn_, mode, kOnly, nullptr, x.get(), &reserve_bytes),
        "cudnnGetBatchNormalizationTrainingExReserveSpaceSize");
  const std::size_t bytes = std::max(forward_bytes, backward_bytes);
  const DevicePointer space = allocate(bytes), reserve = allocate(reserve_bytes);
  const std::size_t statistics = static_cast<std::size_t>(n.channels) * sizeof(float);
  const DevicePointer mean = allocate(statistics), inverse = allocate(statistics);
  const DevicePointer running_mean = allocate(statistics), running_variance = allocate(statistics);
  fill(running_mean, n.channels, true, 0, 0);
  fill(running_variance, n.channels, true, 1, 0);
  constexpr double kAverageFactor = 0.1;  // PyTorch's momentum of batch normalisation
  StepPair steps;
  steps.forward = [=, this] {
    check(libraries_.cudnn.batch_norm_forward(
              cudnn_, mode, kOnly, &kOne, &kZero, x.get(), at(data.input), nullptr, nullptr, x.get(),
              at(data.output), scale.get(), at(memory.scale), at(memory.shift), kAverageFactor,
              at(running_mean), at(running_variance), kEpsilon, at(mean), at(inverse), nullptr, at(space),
              forward_bytes, at(reserve), reserve_bytes),
          "cudnnBatchNormalizationForwardTrainingEx");
  };
  steps.backward = [=, this] {
    check(
        libraries_.cudnn.batch_norm_backward(
            cudnn_, mode, kOnly, &kOne, &kZero, &kOne, &kZero, x.get(), at(data.input), nullptr, nullptr,
            x.get(), at(data.output_gradient), nullptr, nullptr, x.get(), at(data.input_gradient),
            scale.get(), at(memory.scale), nullptr, at(memory.scale_gradient), at(memory.shift_gradient),
            kEpsilon, at(mean), at(inverse), nullptr, at(space), backward_bytes, at(reserve), reserve_bytes),
        "cudnnBatchNormalizationBackwardEx");
  };
  steps.forward();
  steps.backward();
  return steps;
}

/// The persistent kernels are the fast ones for NHWC, and what PyTorch takes there; not for all shapes.
StepPair CudaMath::batch_norm(const BatchNorm& n, int batch, const Activations& data,
                              const NormMemory& memory) {
  if (format_ == cudnn::kNhwc) {
    try {
      return batch_norm_in(format_, cudnn::kSpatialPersistent, n, batch, data, memory);
    } catch (const Error&) {
      stream_.synchronize();
    }
  }
  return in_some_layout([&](cudnn::TensorFormat format) {
    return batch_norm_in(format, cudnn::kSpatial, n, batch, data, memory);
  });
}

StepPair CudaMath::pooling(const Pooling& p, int batch, const Activations& data) {
  return in_some_layout([&](cudnn::TensorFormat format) { return pooling_in(format, p, batch, data); });
}

StepPair CudaMath::pooling_in(cudnn::TensorFormat format, const Pooling& p, int batch,
                              const Activations& data) {
  cudnn::PoolingDescriptor made = nullptr;
  check(libraries_.cudnn.create_pooling(&made), "cudnnCreatePoolingDescriptor");
  const Owned<cudnn::PoolingDescriptor> how(made, libraries_.cudnn.destroy_pooling);
  const int mode = p.maximum ? cudnn::kPoolingMax : cudnn::kPoolingAverageExcludingPadding;
  check(libraries_.cudnn.set_pooling(made, mode, cudnn::kNotPropagateNan, p.kernel, p.kernel, p.padding,
                                     p.padding, p.stride, p.stride),
        "cudnnSetPooling2dDescriptor");
  const Tensor x = tensor(format, batch, p.channels, p.size, p.size);
  const Tensor y = tensor(format, batch, p.channels, p.out_size(), p.out_size());
  StepPair steps;
  steps.forward = [=, this] {
    check(libraries_.cudnn.pooling_forward(cudnn_, how.get(), &kOne, x.get(), at(data.input), &kZero, y.get(),
                                           at(data.output)),
          "cudnnPoolingForward");
  };
  steps.backward = [=, this] {
    check(libraries_.cudnn.pooling_backward(cudnn_, how.get(), &kOne, y.get(), at(data.output), y.get(),
                                            at(data.output_gradient), x.get(), at(data.input), &kZero,
                                            x.get(), at(data.input_gradient)),
          "cudnnPoolingBackward");
  };
  steps.forward();
  steps.backward();
  return steps;
}

StepPair CudaMath::softmax(std::int64_t rows, int width, const Activations& data) {
  const Tensor x = tensor(cudnn::kNchw, static_cast<int>(rows), width, 1, 1);
  StepPair steps;
  steps.forward = [=, this] {
    check(libraries_.cudnn.softmax_forward(cudnn_, cudnn::kSoftmaxAccurate, cudnn::kSoftmaxModeInstance,
                                           &kOne, x.get(), at(data.input), &kZero, x.get(), at(data.output)),
          "cudnnSoftmaxForward");
  };
  steps.backward = [=, this] {
    check(libraries_.cudnn.softmax_backward(
              cudnn_, cudnn::kSoftmaxAccurate, cudnn::kSoftmaxModeInstance, &kOne, x.get(), at(data.output),
              x.get(), at(data.output_gradient), &kZero, x.get(), at(data.input_gradient)),
          "cudnnSoftmaxBackward");
  };
  steps.forward();
  return steps;
}

}  // namespace commtune::compute
