#pragma once
// The memory of one GPU: operations on a stream of its own, whose ends are asked for by events. For the
// sources of what uses GPUs.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/memory/cuda/completions.h"
#include "executor/memory/cuda/device.h"
#include "executor/memory/cuda/kernel_set.h"
#include "executor/memory/memory.h"

namespace commtune::cuda {

class CudaMemory final : public Memory {
 public:
  /// number  as the driver counts GPUs
  explicit CudaMemory(int number) : CudaMemory(std::make_unique<Gpu>(number)) {}
  ~CudaMemory() override;

  const Gpu& gpu() const { return *gpu_; }
  /// What operations are put on, in the order in which they are started.
  const Stream& stream() const { return stream_; }
  /// Whether any of them may not have ended.
  bool any_under_way() const { return ends_.any_under_way(); }

  std::string_view name() const override { return name_; }
  bool in_order() const override { return true; }
  Buffer allocate(std::size_t bytes) override;
  void release(const Buffer& buffer) noexcept override;
  /// Of the host: pins its pages, where the system lets it.
  void register_buffer(const Buffer& buffer) override;
  void unregister_buffer(const Buffer& buffer) noexcept override;
  Started copy(Buffer into, ConstBuffer from) override;
  Started add(DataType type, Buffer into, ConstBuffer from) override;
  Started scale(DataType type, Buffer data, float factor) override;
  Started cast(DataType into_type, Buffer into, DataType from_type, ConstBuffer from) override;
  Started gather(Buffer into, std::span<const Buffer> parts) override;
  Started scatter(std::span<const Buffer> parts, ConstBuffer from) override;
  Started encode(DataType into_type, Buffer into, std::span<const Buffer> parts, float factor) override;
  Started decode(std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
                 std::atomic<std::uint64_t>& overflows) override;
  std::span<const MemoryOperationId> ended() override;
  void wake_with(std::function<void()> wake) override { ends_.wake_with(std::move(wake)); }
  void drain() noexcept override;

 private:
  /// Where a decode counts what overflowed: on the GPU, and where the host reads it at the end.
  struct Counter {
    CUdeviceptr on_device = 0;
    PinnedMemory on_host;
    std::atomic<std::uint64_t>* sum = nullptr;  // while a decode uses it
    MemoryOperationId operation = 0;
  };

  explicit CudaMemory(std::unique_ptr<Gpu> gpu);
  CUstream here() const {
    gpu_->current();
    return stream_.handle();
  }
  Started started() { return ends_.add(stream_.handle()); }
  Counter& take_counter();

  const std::unique_ptr<Gpu> gpu_;  // current from here on
  const std::string name_;
  const Stream stream_;
  const KernelSet kernels_;
  std::vector<Counter> counters_;
  Completions ends_;  // last: what is under way uses the rest
};

}  // namespace commtune::cuda
