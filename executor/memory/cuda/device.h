#pragma once
// A GPU, and owners of what its driver makes. For the sources of what uses GPUs.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "executor/memory/buffer.h"
#include "executor/memory/cuda/driver.h"
#include "perfmodel/base/units.h"

namespace commtune::cuda {

/// What a GPU is: asked without a context, which takes memory of the GPU and is refused where another process
/// has it to itself.
class GpuTraits {
 public:
  /// number  0, 1, ..., as the driver counts them (CUDA_VISIBLE_DEVICES)
  /// throws  Error{kUnavailable} where there is no driver, Error{kBadInput} where there is no such GPU
  explicit GpuTraits(int number);

  int number() const { return number_; }
  CUdevice handle() const { return device_; }
  std::string name() const;    ///< "NVIDIA H100 80GB HBM3"
  std::string bus_id() const;  ///< "0000:1b:00.0"
  std::size_t memory_bytes() const;
  int attribute(CUdevice_attribute which) const;
  int multiprocessors() const { return attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); }

 private:
  int number_;
  CUdevice device_ = 0;
};

/// A GPU in its primary context, which frameworks of the same process share. Any thread, once current() was
/// called there.
class Gpu : public GpuTraits {
 public:
  /// throws  as GpuTraits, Error{kUnavailable} where it lets this process have no context
  explicit Gpu(int number);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// Of buffers in its memory: the host has 0.
  Device device() const { return Device{static_cast<std::uint32_t>(number()) + 1}; }
  CUcontext context() const { return context_; }

  /// From now on calls of this thread are about this GPU.
  void current() const { expect(driver().set_context(context_), "cuCtxSetCurrent"); }

 private:
  CUcontext context_ = nullptr;
};

/// A GPU is current in this thread, and at the end what was before: for calls from a thread that has other
/// business.
class GpuGuard {
 public:
  explicit GpuGuard(const Gpu& gpu) {
    expect(driver().current_context(&before_), "cuCtxGetCurrent");
    gpu.current();
  }
  ~GpuGuard() { driver().set_context(before_); }
  GpuGuard(const GpuGuard&) = delete;
  GpuGuard& operator=(const GpuGuard&) = delete;

 private:
  CUcontext before_ = nullptr;
};

/// How many GPUs this process may use; 0 where there is no driver.
int gpu_count();

/// Work in order, beside what other streams do. Its GPU is current where it is made.
class Stream {
 public:
  enum class Priority { kLowest, kHighest };
  explicit Stream(Priority priority = Priority::kHighest);
  Stream(Stream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream() {
    if (handle_ != nullptr) driver().destroy_stream(handle_);
  }
  CUstream handle() const { return handle_; }
  void synchronize() const { expect(driver().synchronize_stream(handle_), "cuStreamSynchronize"); }

 private:
  CUstream handle_ = nullptr;
};

/// A place in a stream.
class Event {
 public:
  enum class Use {
    kOrder,    ///< that something has ended; cheaper
    kTime,     ///< and when
    kWaiting,  ///< for a thread that sleeps until it has passed
  };
  explicit Event(Use use = Use::kOrder);
  Event(Event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Event() {
    if (handle_ != nullptr) driver().destroy_event(handle_);
  }
  CUevent handle() const { return handle_; }

  /// It is behind all that the stream was given so far.
  void record(const Stream& stream) { record(stream.handle()); }
  void record(CUstream stream) { expect(driver().record_event(handle_, stream), "cuEventRecord"); }
  /// What the stream is given from now on waits for it, on the device.
  void hold(const Stream& stream) const { hold(stream.handle()); }
  void hold(CUstream stream) const {
    expect(driver().wait_for_event(stream, handle_, 0), "cuStreamWaitEvent");
  }
  /// throws  Error{kUnavailable} where what is before it failed
  bool has_passed() const;
  void synchronize() const { expect(driver().synchronize_event(handle_), "cuEventSynchronize"); }
  /// Both of Use::kTime, and passed.
  Seconds since(const Event& earlier) const;

 private:
  CUevent handle_ = nullptr;
};

/// Kernels that the build compiled.
class Module {
 public:
  /// image  a fat binary, or PTX; its GPU is current
  explicit Module(const void* image) { expect(driver().load_module(&handle_, image), "cuModuleLoadData"); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module() {
    if (handle_ != nullptr) driver().unload_module(handle_);
  }
  CUfunction function(const char* name) const;

 private:
  CUmodule handle_ = nullptr;
};

/// Memory of the host that the GPU copies from and to without the processor's help.
struct ReleasePinned {
  void operator()(std::byte* memory) const noexcept { driver().release_pinned(memory); }
};
using PinnedMemory = std::unique_ptr<std::byte[], ReleasePinned>;
/// throws  Error{kUnavailable} where there is not so much left
PinnedMemory allocate_pinned(std::size_t bytes);

}  // namespace commtune::cuda
