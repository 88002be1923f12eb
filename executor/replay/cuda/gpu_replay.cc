#include "executor/replay/cuda/gpu_replay.h"

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "executor/memory/cuda/cuda_memory.h"
#include "executor/memory/cuda/cuda_notices.h"
#include "executor/memory/pool.h"
#include "executor/memory/reduce.h"
#include "executor/replay/cuda/device_clock.h"
#include "executor/replay/replay.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

using cuda::CudaMemory;
using cuda::Stream;

/// Says that gradients are ready, once the stream has come behind their layer.
class ReadyNotices {
 public:
  explicit ReadyNotices(const cuda::Gpu& gpu) : notices_(gpu.number()) {}

  void begin() { failure_ = nullptr; }
  void put(const Stream& computing, Session& session, TensorRange tensors) {
    notices_.after(computing.handle(), [this, &session, tensors] {
      try {
        session.ready(tensors);
      } catch (...) {
        failure_ = std::current_exception();
      }
    });
  }
  /// Comes back when all have been said. Throws what one of them threw.
  void settle() {
    notices_.settle();
    if (failure_) std::rethrow_exception(failure_);
  }
  /// The same, whatever they threw.
  void end() { notices_.settle(); }

 private:
  std::exception_ptr failure_;  // written before settle() comes back
  cuda::CudaNotices notices_;   // last: calls use the rest
};

/// A buffer of the GPU and its like on the host, for the elements that timed iterations compare.
class SpotBlock {
 public:
  SpotBlock(CudaMemory& memory, std::size_t bytes)
      : on_gpu_(memory, bytes, nullptr), on_host_(cuda::allocate_pinned(bytes)), bytes_(bytes) {}
  const Buffer& on_gpu() const { return on_gpu_.buffer(); }
  std::span<std::byte> on_host() const { return {on_host_.get(), bytes_}; }

 private:
  Allocation on_gpu_;
  cuda::PinnedMemory on_host_;
  std::size_t bytes_;
};

class GpuReplay final : public Replay {
 public:
  /// memory  of the session, whose thread uses it; here it says which GPU
  GpuReplay(const Profile& profile, int rank, int workers, Result result, const CudaMemory& memory)
      : Replay(profile, rank, workers, result),
        memory_(memory.gpu().number()),
        computing_(Stream::Priority::kLowest),
        clock_(memory_.gpu()),
        whole_(memory_, gradient_bytes(), nullptr),
        spots_(memory_, profile.tensor_count() * 3 * element_size(profile.type).count),
        notices_(memory_.gpu()) {
    std::size_t end = gradient_bytes();
    for (const TensorRef& each : tensors_of(profile)) {
      end -= each.bytes.count;
      gradients_.push_back(whole_.buffer().part(end, each.bytes.count));
    }
    list_spots();
  }
  ~GpuReplay() override { cuda::driver().synchronize_stream(computing_.handle()); }

  const Gradients& gradients() const override { return gradients_; }

 private:
  void list_spots();
  template <typename Each>
  void for_spots(Each each) const;
  void settle() {
    memory_.drain();
    memory_.ended();
  }
  void write_everything() override;
  void begin_timed() override;
  void compute_until(Clock::time_point end) override { clock_.compute_until(computing_, end); }
  void write_spots(TensorRange /*tensors*/) override {}  // begin_timed() wrote them all
  void release(Session& session, TensorRange tensors, bool on_time) override;
  Clock::time_point finish() override;
  void give_up() noexcept override { notices_.end(); }
  void compare_spots() override;
  void compare_everything() override;

  CudaMemory memory_;
  Stream computing_;
  cuda::DeviceClock clock_;
  Allocation whole_;
  SpotBlock spots_;
  Gradients gradients_;
  std::vector<Buffer> spot_parts_;
  std::vector<std::byte> staging_;  // of one tensor, where all of it is written or compared
  TensorRange made_{};              // gradients that no notice has told of yet
  cuda::Event written_;
  ReadyNotices notices_;
};

void GpuReplay::list_spots() {
  const std::size_t element = element_size(type()).count;
  for (const Buffer& gradient : gradients_) {
    for (const std::size_t index : spots(gradient.bytes / element))
      spot_parts_.push_back(gradient.part(index * element, element));
  }
}

/// Calls each(tensor, index in it, place among the spots).
template <typename Each>
void GpuReplay::for_spots(Each each) const {
  std::size_t place = 0;
  for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor) {
    for (const std::size_t index : spots(gradients_[tensor].bytes / element_size(type()).count))
      each(tensor, index, place++);
  }
}

void GpuReplay::write_everything() {
  for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor) {
    staging_.resize(gradients_[tensor].bytes);
    fill_whole(tensor, staging_);
    memory_.copy(gradients_[tensor], ConstBuffer(std::span<const std::byte>(staging_)));
    settle();
  }
  clock_.adjust(computing_);
  notices_.begin();
  made_ = {};
}

void GpuReplay::begin_timed() {
  clock_.adjust(computing_);
  notices_.begin();
  made_ = {};
  for_spots([&](TensorId tensor, std::size_t index, std::size_t place) {
    set_element(type(), spots_.on_host(), place, put_in(tensor, index));
  });
  memory_.copy(spots_.on_gpu(), ConstBuffer(std::span<const std::byte>(spots_.on_host())));
  memory_.scatter(spot_parts_, spots_.on_gpu());
  written_.record(memory_.stream());
  written_.hold(computing_);
}

/// Layers end from the last to the first; what no message waits for is told of with the next one.
void GpuReplay::release(Session& session, TensorRange tensors, bool on_time) {
  made_ = made_.first == made_.end ? tensors : TensorRange{tensors.first, made_.end};
  if (!on_time && tensors.first > 0) return;
  notices_.put(computing_, session, made_);
  made_ = {};
}

Clock::time_point GpuReplay::finish() {
  computing_.synchronize();
  notices_.settle();
  settle();
  return clock_.last_end();
}

void GpuReplay::compare_spots() {
  memory_.gather(spots_.on_gpu(), spot_parts_);
  memory_.copy(Buffer(spots_.on_host()), spots_.on_gpu());
  settle();
  for_spots([&](TensorId tensor, std::size_t index, std::size_t place) {
    compare_spot(tensor, index, element(type(), spots_.on_host(), place));
  });
}

void GpuReplay::compare_everything() {
  for (TensorId tensor = 0; tensor < gradients_.size(); ++tensor) {
    staging_.resize(gradients_[tensor].bytes);
    memory_.copy(Buffer(std::span(staging_)), gradients_[tensor]);
    settle();
    compare_whole(tensor, staging_);
  }
}

}  // namespace

std::unique_ptr<SessionWorkload> make_gpu_replay(const Profile& profile, int rank, int workers, Result result,
                                                 Memory& memory) {
  const auto* const gpu = dynamic_cast<const CudaMemory*>(&memory);
  if (gpu == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                "a replay runs on the host or a GPU, and not on " + std::string(memory.name()));
  }
  return std::make_unique<GpuReplay>(profile, rank, workers, result, *gpu);
}

}  // namespace commtune
