// A training program whose gradients lie on a GPU, and are written by a stream that runs behind the host.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "api/c/plan_source.h"
#include "api/c/training_session.h"
#include "executor/memory/cuda/cuda_memory.h"
#include "executor/memory/cuda/gpu_memory.h"
#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/gpu/stream_gate.h"

namespace commtune::api::testing {
namespace {

using commtune::tests::on_bootstraps;
using commtune::tests::StreamGate;
using ::testing::Each;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int kRanks = 3;

TrainingOptions all_train() {
  TrainingOptions options;
  options.session.workers = 0;
  return options;
}

TensorLayout layout() {
  return {.type = DataType::kFloat32,
          .tensors = {{"a.weight", 40000_B}, {"a.bias", 40_B}, {"b.weight", 80000_B}, {"b.bias", 4_B}}};
}

std::optional<Plan> plan(int rank, int servers) {
  if (rank != 0) return std::nullopt;
  return bucket_plan(layout(), kRanks,
                     {.first = 5000_B, .others = 5000_B, .servers = servers, .barrier = Barrier::kPerLayer});
}

class GpuGradients : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

/// Gradients of a rank, written and read by a stream of its own, as a framework does.
class Trainee {
 public:
  Trainee(TrainingSession& session, bool own_memory)
      : session_(session), memory_(0), pinned_(cuda::allocate_pinned(layout().bytes().count)) {
    if (own_memory) whole_ = memory_.allocate(layout().bytes().count);
    std::vector<void*> addresses;
    std::size_t place = 0;
    for (const Tensor& tensor : layout().tensors) {
      if (own_memory) addresses.push_back(whole_.part(place, tensor.bytes.count).address);
      place += tensor.bytes.count;
    }
    session.set_layout(layout(), addresses, 0);
  }
  ~Trainee() {
    if (whole_.bytes > 0) memory_.release(whole_);
  }
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;

  const cuda::Stream& stream() const { return stream_; }
  std::size_t tensors() const { return session_.layout().tensors.size(); }

  /// On the stream: the call comes back before it is written.
  void write(std::size_t tensor, float value) {
    const std::span<float> there = host(tensor);
    std::ranges::fill(there, value);
    cuda::expect(
        cuda::driver().copy_to_device(address(tensor), there.data(), there.size_bytes(), stream_.handle()),
        "cuMemcpyHtoDAsync");
  }
  std::span<const float> read(std::size_t tensor) {
    const std::span<float> there = host(tensor);
    cuda::expect(
        cuda::driver().copy_to_host(there.data(), address(tensor), there.size_bytes(), stream_.handle()),
        "cuMemcpyDtoHAsync");
    stream_.synchronize();
    return there;
  }

 private:
  CUdeviceptr address(std::size_t tensor) const {
    return reinterpret_cast<CUdeviceptr>(session_.gradient(tensor));
  }
  std::span<float> host(std::size_t tensor) const {
    std::size_t place = 0;
    for (std::size_t i = 0; i < tensor; ++i) place += layout().tensors[i].bytes.count;
    return {reinterpret_cast<float*>(pinned_.get() + place),
            layout().tensors[tensor].bytes.count / sizeof(float)};
  }

  TrainingSession& session_;
  cuda::CudaMemory memory_;
  const cuda::Stream stream_;
  const cuda::PinnedMemory pinned_;
  Buffer whole_;
};

/// The mean over the ranks is (step + tensor + 1) x 2.
float value_of(int rank, int step, std::size_t tensor) {
  return static_cast<float>(rank + 1) * static_cast<float>(step + 1 + static_cast<int>(tensor));
}

TEST_P(GpuGradients, TravelWhenTheirStreamHasWrittenThem) {
  on_bootstraps(kRanks, [&](const std::shared_ptr<Bootstrap>& bootstrap) {
    const int rank = bootstrap->peers().rank;
    TrainingSession session(bootstrap, all_train());
    Trainee trainee(session, GetParam());
    for (int step = 0; step < 6; ++step) {
      if (step % 2 == 0) session.adopt(plan(rank, step == 2 ? 2 : 0));
      session.begin();
      {
        StreamGate gate(trainee.stream().handle());
        for (std::size_t tensor = trainee.tensors(); tensor-- > 0;) {
          trainee.write(tensor, value_of(rank, step, tensor));
          session.ready_after(tensor, trainee.stream().handle());
        }
        // Long enough for a message that does not wait for the stream.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(session.is_back(trainee.tensors() - 1));
        gate.open();
        for (std::size_t tensor = 0; tensor < trainee.tensors(); ++tensor) session.wait(tensor);
      }
      for (std::size_t tensor = 0; tensor < trainee.tensors(); ++tensor) {
        EXPECT_THAT(trainee.read(tensor), Each(FloatEq(value_of(1, step, tensor))))
            << "step " << step << ", " << layout().tensors[tensor].name;
      }
    }
    session.leave();
  });
}

INSTANTIATE_TEST_SUITE_P(Memory, GpuGradients, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "TheCallers" : "TheLibrarys"; });

class OneRank : public GpuGradients {};

TEST_F(OneRank, TellsAtTheWaitWhatAStreamsNoticeMetWith) {
  on_bootstraps(1, [&](const std::shared_ptr<Bootstrap>& bootstrap) {
    TrainingSession session(bootstrap, all_train());
    Trainee trainee(session, false);
    session.adopt(bucket_plan(layout(), 1));
    session.begin();
    for (int twice = 0; twice < 2; ++twice) session.ready_after(0, trainee.stream().handle());
    EXPECT_THAT([&] { session.begin(); }, ThrowsMessage<Error>(HasSubstr("a.weight was ready already")));
    EXPECT_THROW(session.wait(0), Error);
  });
}

TEST_F(OneRank, ASessionOnTheHostHasNoStreams) {
  on_bootstraps(1, [](const std::shared_ptr<Bootstrap>& bootstrap) {
    TrainingSession session(bootstrap, all_train());
    session.set_layout(layout(), {});
    session.adopt(bucket_plan(layout(), 1));
    session.begin();
    EXPECT_THAT([&] { session.ready_after(0, nullptr); },
                ThrowsMessage<BadCall>(HasSubstr("no stream writes")));
    for (std::size_t tensor = 0; tensor < layout().tensors.size(); ++tensor) session.ready(tensor);
    session.wait_all();
    session.leave();
  });
}

TEST_F(OneRank, AGpuThatThereIsNotIsNamed) {
  on_bootstraps(1, [](const std::shared_ptr<Bootstrap>& bootstrap) {
    TrainingSession session(bootstrap, all_train());
    EXPECT_THAT([&] { session.set_layout(layout(), {}, 99); },
                ThrowsMessage<Error>(HasSubstr("GPU 99: this process sees")));
  });
}

}  // namespace
}  // namespace commtune::api::testing
