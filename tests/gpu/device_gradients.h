#pragma once
// A job's gradients in a GPU's memory, side by side as a training program has them.

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "executor/engine/message_buffer.h"
#include "executor/memory/cuda/cuda_memory.h"
#include "executor/replay/pattern.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::tests {

class DeviceGradients {
 public:
  DeviceGradients(const Profile& profile, int rank, int gpu = 0)
      : memory_(gpu),
        type_(profile.type),
        rank_(rank),
        whole_(memory_.allocate(profile.gradient_bytes().count)) {
    std::size_t end = whole_.bytes;
    for (const TensorRef& tensor : tensors_of(profile)) {
      end -= tensor.bytes.count;
      gradients_.push_back(whole_.part(end, tensor.bytes.count));
    }
  }
  ~DeviceGradients() { memory_.release(whole_); }
  DeviceGradients(const DeviceGradients&) = delete;
  DeviceGradients& operator=(const DeviceGradients&) = delete;

  const Gradients& gradients() const { return gradients_; }

  /// Where a plan divides before it casts, gradients are that many times the pattern: exact in every type.
  void write(const Plan& plan, Result result, std::uint64_t iteration) {
    const int times = divides_first(plan, result) ? plan.workers : 1;
    for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor) {
      std::vector<std::byte> bytes(gradients_[tensor].bytes);
      fill(bytes, type_, rank_, tensor, iteration, times);
      memory_.copy(gradients_[tensor], ConstBuffer(std::span<const std::byte>(bytes)));
      settle();
    }
  }
  void expect_result(const Plan& plan, Result result, std::uint64_t iteration) {
    const Result expected = divides_first(plan, result) ? Result::kSum : result;
    for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor) {
      std::vector<std::byte> bytes(gradients_[tensor].bytes);
      memory_.copy(Buffer(std::span(bytes)), gradients_[tensor]);
      settle();
      const auto wrong = first_wrong(bytes, type_, plan.workers, expected, tensor, iteration);
      EXPECT_FALSE(wrong) << "rank " << rank_ << ", iteration " << iteration << ": tensor " << tensor
                          << ", element " << *wrong;
    }
  }

 private:
  static bool divides_first(const Plan& plan, Result result) {
    return plan.wire != WireFormat::kAsIs && result == Result::kMean;
  }
  void settle() {
    memory_.drain();
    memory_.ended();
  }

  cuda::CudaMemory memory_;  // the session's own is used by its communication thread
  const DataType type_;
  const int rank_;
  const Buffer whole_;
  Gradients gradients_;
};

}  // namespace commtune::tests
