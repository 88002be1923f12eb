#include "probes/load/cuda/gpu_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "executor/memory/cuda/device.h"
#include "probes/load/cuda/kernel_images.h"

namespace commtune::probes {

namespace {

using cuda::Event;
using cuda::Stream;

/// A step is so many kernels one after the other, as a layer is: between them other kernels' blocks find
/// room.
constexpr int kKernels = 8;
constexpr unsigned kThreads = 1024;  // of a block; one goes to each multiprocessor while some have none
/// Steps that are queued behind the one under way, so that the GPU never waits for the host.
constexpr std::size_t kAhead = 2;

/// Multiply-adds on a part of a GPU.
class Arithmetic {
 public:
  Arithmetic(const cuda::Gpu& gpu, double sm_share)
      : function_(module_.function("commtune_compute")),
        blocks_(static_cast<unsigned>(std::max(1L, std::lround(sm_share * gpu.multiprocessors())))) {}

  void put(const Stream& stream, std::uint64_t rounds) const {
    CUdeviceptr never = 0;
    float stop = -1;  // no sum of what begins with 0 and more is
    void* arguments[] = {&rounds, &stop, &never};
    cuda::expect(cuda::driver().launch(function_, blocks_, 1, 1, kThreads, 1, 1, 0, stream.handle(),
                                       arguments, nullptr),
                 "commtune_compute");
  }

 private:
  const cuda::Module module_{images::compute()};
  const CUfunction function_;
  const unsigned blocks_;
};

/// Rounds of each of a step's kernels, with which it takes kStepLength where nothing else runs.
std::uint64_t measured_rounds(const Arithmetic& arithmetic, const Stream& stream) {
  constexpr std::uint64_t kTrial = std::uint64_t{1} << 14U;  // about a millisecond
  constexpr int kTrials = 5;                                 // the first ones also raise the clock
  Seconds fastest = Seconds::max();
  for (int i = 0; i < kTrials; ++i) {
    Event begin(Event::Use::kTime), end(Event::Use::kTime);
    begin.record(stream);
    arithmetic.put(stream, kTrial);
    end.record(stream);
    end.synchronize();
    fastest = std::min(fastest, end.since(begin));
  }
  const double rounds = static_cast<double>(kTrial) * (Seconds{kStepLength} / fastest) / kKernels;
  return static_cast<std::uint64_t>(std::max(1.0, rounds));
}

/// Measured once for a GPU in a process: steps that are compared do the same work.
std::uint64_t rounds_on(int gpu, const Arithmetic& arithmetic, const Stream& stream) {
  static std::mutex mutex;
  static std::map<int, std::uint64_t> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(gpu);
  if (is_new) found->second = measured_rounds(arithmetic, stream);
  return found->second;
}

class GpuStep final : public ComputeStep {
 public:
  /// gpu  current in this thread
  GpuStep(std::unique_ptr<cuda::Gpu> gpu, double sm_share)
      : gpu_(std::move(gpu)),
        computing_(Stream::Priority::kLowest),
        arithmetic_(*gpu_, sm_share),
        rounds_(rounds_on(gpu_->number(), arithmetic_, computing_)) {}
  ~GpuStep() override {
    cuda::driver().set_context(gpu_->context());
    cuda::driver().synchronize_stream(computing_.handle());
  }

  Nanoseconds run() override {
    if (ended_ == 0) begin();
    put();
    ++ended_;
    mark(ended_).reached.synchronize();
    return std::chrono::duration_cast<Nanoseconds>(mark(ended_).when.since(mark(ended_ - 1).when));
  }

 private:
  /// Behind a step: when the stream came there, and for the thread that sleeps until then.
  struct Mark {
    Event when{Event::Use::kTime}, reached{Event::Use::kWaiting};
  };
  Mark& mark(std::size_t step) { return marks_[step % marks_.size()]; }
  void set(Mark& mark) const {
    mark.when.record(computing_);
    mark.reached.record(computing_);
  }

  void begin() {
    gpu_->current();  // in the thread that runs steps
    set(mark(0));
    for (std::size_t i = 0; i < kAhead; ++i) put();
  }
  void put() {
    for (int i = 0; i < kKernels; ++i) arithmetic_.put(computing_, rounds_);
    set(mark(++put_));
  }

  const std::unique_ptr<cuda::Gpu> gpu_;
  const Stream computing_;
  const Arithmetic arithmetic_;
  const std::uint64_t rounds_;
  // Of the steps that are queued, of the last one that ended, and the next.
  std::array<Mark, kAhead + 2> marks_;
  std::size_t put_ = 0, ended_ = 0;  // steps
};

}  // namespace

std::unique_ptr<ComputeStep> make_gpu_step(int number, double sm_share) {
  auto gpu = std::make_unique<cuda::Gpu>(number);
  gpu->current();
  return std::make_unique<GpuStep>(std::move(gpu), sm_share);
}

}  // namespace commtune::probes
