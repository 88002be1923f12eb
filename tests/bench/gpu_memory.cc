// What a GPU's memory takes: gathering a message's tensors and scattering them back beside a plain copy of as
// many bytes, copies to and from the host, launches, and how soon an end is heard of.
//
//   build/tests/bench/gpu_memory      status 1 where a target is missed, 77 where there is no GPU

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>

#include "executor/memory/cuda/cuda_memory.h"
#include "executor/memory/cuda/gpu_memory.h"
#include "executor/memory/cuda/kernel_images.h"
#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "tests/bench/gpu_bench.h"

namespace commtune::bench {
namespace {

constexpr int kRounds = 15, kRepetitions = 10;
/// Of a copy's bandwidth.
constexpr double kTarget = 0.85;

/// A profile's gradients on the GPU, 256 B aligned as a framework's are, and a stretch for all of them.
class Message {
 public:
  Message(cuda::CudaMemory& memory, std::string_view profile) : memory_(memory) {
    for (const TensorRef& tensor : tensors_of(*shipped_profile(profile))) {
      parts_.push_back(memory.allocate(tensor.bytes.count));
      bytes_ += tensor.bytes.count;
    }
    wire_ = memory.allocate(bytes_);
    other_ = memory.allocate(bytes_);
  }
  ~Message() {
    for (const Buffer& part : parts_) memory_.release(part);
    memory_.release(wire_);
    memory_.release(other_);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  std::size_t bytes() const { return bytes_; }
  std::size_t tensors() const { return parts_.size(); }
  void copy() const { memory_.copy(other_, wire_); }
  void gather() const { memory_.gather(wire_, parts_); }
  void scatter() const { memory_.scatter(parts_, wire_); }
  void encode() const { memory_.encode(DataType::kBfloat16, wire_.first(bytes_ / 2), parts_, 1.0F); }

 private:
  cuda::CudaMemory& memory_;
  std::vector<Buffer> parts_;
  std::size_t bytes_ = 0;
  Buffer wire_, other_;
};

/// Ends of operations are taken up, or they pile up.
double seconds_of(cuda::CudaMemory& memory, const std::function<void()>& put) {
  const double seconds = seconds_on(memory.stream(), [&] {
    for (int i = 0; i < kRepetitions; ++i) put();
  });
  memory.drain();
  memory.ended();
  return seconds / kRepetitions;
}

struct Ratios {
  double gather = 0, scatter = 0, aa = 0;
};

Ratios measure_message(cuda::CudaMemory& memory, std::string_view profile) {
  const Message message(memory, profile);
  std::vector<double> copy;
  std::vector<double> again;
  std::vector<double> gather;
  std::vector<double> scatter;
  std::vector<double> encode;
  for (int round = -2; round < kRounds; ++round) {
    const double first = seconds_of(memory, [&] { message.copy(); });
    const double together = seconds_of(memory, [&] { message.gather(); });
    const double apart = seconds_of(memory, [&] { message.scatter(); });
    const double second = seconds_of(memory, [&] { message.copy(); });
    const double encoded = seconds_of(memory, [&] { message.encode(); });
    if (round < 0) continue;
    copy.push_back(first);
    again.push_back(second);
    gather.push_back(together);
    scatter.push_back(apart);
    encode.push_back(encoded);
  }
  const auto row = [&](const char* what, const std::vector<double>& seconds) {
    const double time = median_of(seconds);
    fmt::print("{:<10} {:<24} {:>9.1f} us {:>8.1f} GB/s read and written {:>6.3f} of a copy\n", profile, what,
               time * 1e6, 2 * static_cast<double>(message.bytes()) / time / 1e9, median_of(copy) / time);
  };
  row("copy", copy);
  row("copy, again", again);
  row(fmt::format("gather {} tensors", message.tensors()).c_str(), gather);
  row("scatter", scatter);
  row("gather, cast to bf16", encode);
  return {median_of(copy) / median_of(gather), median_of(copy) / median_of(scatter), difference(copy, again)};
}

void measure_host_copies(cuda::CudaMemory& memory) {
  constexpr std::size_t kBytes = std::size_t{64} << 20U;
  const cuda::PinnedMemory host = cuda::allocate_pinned(kBytes);
  const Buffer device = memory.allocate(kBytes);
  const double up = seconds_of(memory, [&] { memory.copy(device, ConstBuffer(host.get(), kBytes)); });
  const double down = seconds_of(memory, [&] { memory.copy(Buffer(host.get(), kBytes), device); });
  memory.release(device);
  fmt::print("{:<35} {:>9.1f} us {:>8.1f} GB/s\n", "host to device, 64 MiB, pinned", up * 1e6,
             kBytes / up / 1e9);
  fmt::print("{:<35} {:>9.1f} us {:>8.1f} GB/s\n", "device to host", down * 1e6, kBytes / down / 1e9);
}

double launch_seconds(cuda::CudaMemory& memory) {
  const cuda::Module module(cuda::images::busy());
  const CUfunction busy = module.function("commtune_busy");
  std::uint64_t nothing = 0;
  void* arguments[] = {&nothing};
  constexpr int kLaunches = 1000;
  const auto launch = [&] {
    cuda::expect(
        cuda::driver().launch(busy, 1, 1, 1, 1, 1, 1, 0, memory.stream().handle(), arguments, nullptr),
        "cuLaunchKernel");
  };
  launch();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i) launch();
  memory.stream().synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kLaunches;
}

/// From a small copy's start to the call that says that it has ended, beside a thread that waits for it.
double notice_seconds(cuda::CudaMemory& memory) {
  const Buffer data = memory.allocate(8);
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;
  memory.wake_with([&] {
    const std::lock_guard lock(mutex);
    ++calls;
    changed.notify_one();
  });
  std::vector<double> seconds;
  seconds.reserve(200);
  for (int i = 0; i < 200; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    memory.copy(data.first(4), ConstBuffer(data.part(4, 4)));
    while (memory.ended().empty()) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return calls > 0; });
      calls = 0;
    }
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  memory.wake_with({});
  memory.release(data);
  return median_of(seconds);
}

int run() {
  cuda::CudaMemory memory(0);
  fmt::print("{}, {} multiprocessors, driver for CUDA {}.{}\n", memory.gpu().name(),
             memory.gpu().multiprocessors(), cuda::loaded().version / 1000,
             cuda::loaded().version % 1000 / 10);
  const Ratios resnet = measure_message(memory, "resnet50");
  const Ratios bert = measure_message(memory, "bert_base");
  measure_host_copies(memory);
  const double launch = launch_seconds(memory);
  const double notice = notice_seconds(memory);
  fmt::print("{:<35} {:>9.2f} us\n{:<35} {:>9.2f} us\n", "launch of an empty kernel", launch * 1e6,
             "copy of 4 B until its end is known", notice * 1e6);
  const bool judged = !is_standin(memory.gpu());
  const double least = std::min(resnet.gather, resnet.scatter);
  fmt::print(
      "RESULT gpu_memory gather_of_copy={:.3f} scatter_of_copy={:.3f} bert_gather_of_copy={:.3f} "
      "bert_scatter_of_copy={:.3f} aa={:.4f} launch_us={:.2f} notice_us={:.2f} target={} excluded={}\n",
      resnet.gather, resnet.scatter, bert.gather, bert.scatter, resnet.aa, launch * 1e6, notice * 1e6,
      kTarget, judged ? "none" : "all:stand-in");
  return judged && least < kTarget * (1 - 2 * resnet.aa) ? 1 : 0;
}

}  // namespace
}  // namespace commtune::bench

int main() { return commtune::bench::exit_status("gpu_memory", commtune::why_no_gpu, commtune::bench::run); }
