// Notices of streams that a program puts its work on.

#include "executor/memory/cuda/cuda_notices.h"

#include <gmock/gmock.h>

#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/memory/cuda/gpu_memory.h"
#include "perfmodel/base/error.h"
#include "tests/gpu/stream_gate.h"

namespace commtune::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CudaNoticesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    gpu_ = std::make_unique<cuda::Gpu>(0);
    gpu_->current();
  }
  void note(cuda::CudaNotices& notices, const cuda::Stream& stream, int number) {
    notices.after(stream.handle(), [this, number] {
      const std::lock_guard lock(mutex_);
      ended_.push_back(number);
    });
  }
  std::vector<int> ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

 private:
  std::unique_ptr<cuda::Gpu> gpu_;
  std::mutex mutex_;
  std::vector<int> ended_;
};

TEST_F(CudaNoticesTest, ComeInAStreamsOrderOnceItHasComeThere) {
  const cuda::Stream stream;
  cuda::CudaNotices notices(0);
  note(notices, stream, 1);
  notices.settle();
  EXPECT_THAT(ended(), ElementsAre(1)) << "nothing was before it";
  StreamGate gate(stream.handle());
  for (const int number : {2, 3, 4}) note(notices, stream, number);
  EXPECT_THAT(ended(), ElementsAre(1));
  gate.open();
  notices.settle();
  EXPECT_THAT(ended(), ElementsAre(1, 2, 3, 4));
}

TEST_F(CudaNoticesTest, OfOneStreamDoNotWaitForAnother) {
  const cuda::Stream slow;
  const cuda::Stream quick;
  cuda::CudaNotices notices(0);
  StreamGate gate(slow.handle());
  note(notices, slow, 1);
  std::promise<void> told;
  notices.after(quick.handle(), [&] { told.set_value(); });
  told.get_future().wait();
  EXPECT_THAT(ended(), IsEmpty());
  gate.open();
}

TEST_F(CudaNoticesTest, AreCalledBeforeTheirOwnerIsGone) {
  const cuda::Stream stream;
  auto notices = std::make_unique<cuda::CudaNotices>(0);
  StreamGate gate(stream.handle());
  note(*notices, stream, 1);
  std::jthread opens([&] { gate.open(); });
  notices.reset();
  EXPECT_THAT(ended(), ElementsAre(1));
}

/// A thread may have no GPU of its own, or another one.
TEST_F(CudaNoticesTest, LeaveTheCallersGpuAsItWas) {
  const cuda::Stream stream;
  cuda::CudaNotices notices(0);
  std::jthread([&] {
    note(notices, stream, 1);
    CUcontext now = nullptr;
    cuda::expect(cuda::driver().current_context(&now), "cuCtxGetCurrent");
    EXPECT_EQ(now, nullptr);
  }).join();
  notices.settle();
  EXPECT_THAT(ended(), ElementsAre(1));
}

}  // namespace
}  // namespace commtune::tests
