// The stand-in itself: its order, its refusals and its costs. On a GPU there is nothing of it to test.

#include <cuda.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "executor/memory/cuda/driver.h"
#include "tests/gpu/stream_gate.h"

namespace commtune::tests {
namespace {

using cuda::driver;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::size_t kBytes = 1'000'000;

class StandinTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::loaded().why_not.empty()) GTEST_SKIP() << cuda::loaded().why_not;
    char name[64] = {};
    ASSERT_EQ(driver().device_name(name, sizeof name, 0), CUDA_SUCCESS);
    if (std::string(name) != "commtune stand-in GPU") GTEST_SKIP() << "this is a GPU: " << name;
    CUcontext context = nullptr;
    ASSERT_EQ(driver().retain_context(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver().set_context(context), CUDA_SUCCESS);
    for (CUstream& stream : streams_)
      ASSERT_EQ(driver().create_stream(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver().allocate(&memory_, kBytes), CUDA_SUCCESS);
  }
  void TearDown() override {
    for (const char* const name : {"COPY_US", "COPY_BYTES_PER_S"})
      unsetenv((std::string("COMMTUNE_STANDIN_") + name).c_str());
    if (memory_ != 0) driver().release(memory_);
    for (CUstream stream : streams_) {
      if (stream != nullptr) driver().destroy_stream(stream);
    }
  }

  CUstream streams_[2] = {};
  CUdeviceptr memory_ = 0;
};

TEST_F(StandinTest, AStreamKeepsItsOrderBesideOthers) {
  std::vector<unsigned char> seen(1);
  ASSERT_EQ(driver().set_bytes(memory_, 1, kBytes, streams_[0]), CUDA_SUCCESS);
  StreamGate gate(streams_[0]);
  ASSERT_EQ(driver().set_bytes(memory_, 2, kBytes, streams_[0]), CUDA_SUCCESS);
  EXPECT_EQ(driver().query_stream(streams_[0]), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(driver().synchronize_stream(streams_[1]), CUDA_SUCCESS) << "the other stream is not held";
  gate.open();
  ASSERT_EQ(driver().copy_to_host(seen.data(), memory_, 1, streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(driver().synchronize_stream(streams_[0]), CUDA_SUCCESS);
  EXPECT_EQ(seen[0], 2);
  EXPECT_EQ(driver().query_stream(streams_[0]), CUDA_SUCCESS);
}

TEST_F(StandinTest, AnEventHoldsAnotherStream) {
  CUevent event = nullptr;
  std::vector<unsigned char> seen(1);
  ASSERT_EQ(driver().create_event(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  StreamGate gate(streams_[0]);
  ASSERT_EQ(driver().set_bytes(memory_, 3, 1, streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(driver().record_event(event, streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(driver().wait_for_event(streams_[1], event, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver().copy_to_host(seen.data(), memory_, 1, streams_[1]), CUDA_SUCCESS);
  EXPECT_EQ(driver().query_event(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(driver().query_stream(streams_[1]), CUDA_ERROR_NOT_READY);
  gate.open();
  ASSERT_EQ(driver().synchronize_stream(streams_[1]), CUDA_SUCCESS);
  EXPECT_EQ(seen[0], 3);
  EXPECT_EQ(driver().query_event(event), CUDA_SUCCESS);
  driver().destroy_event(event);
}

TEST_F(StandinTest, RefusesWhatItDoesNotKnow) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  int value = 0;
  EXPECT_EQ(driver().load_module(&module, "image"), CUDA_SUCCESS);
  EXPECT_EQ(driver().module_function(&function, module, "commtune_unheard_of"), CUDA_ERROR_NOT_FOUND);
  driver().unload_module(module);
  EXPECT_EQ(driver().set_bytes(memory_, 0, 1, nullptr), CUDA_ERROR_INVALID_HANDLE) << "the default stream";
  EXPECT_EQ(driver().set_bytes(memory_, 0, kBytes + 1, streams_[0]), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver().device_attribute(&value, CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 0),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(driver().device(&value, 99), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(StandinTest, RefusesCallsFromAFunctionOnTheHost) {
  struct Call {
    CUstream stream;
    CUresult result;
  } call{streams_[1], CUDA_SUCCESS};
  const CUhostFn function = [](void* data) {
    auto& asked = *static_cast<Call*>(data);
    asked.result = driver().synchronize_stream(asked.stream);
  };
  ASSERT_EQ(driver().call_on_host(streams_[0], function, &call), CUDA_SUCCESS);
  ASSERT_EQ(driver().synchronize_stream(streams_[0]), CUDA_SUCCESS);
  EXPECT_EQ(call.result, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(StandinTest, CopiesTakeTheTimeThatTheEnvironmentSays) {
  setenv("COMMTUNE_STANDIN_COPY_US", "5000", 1);
  setenv("COMMTUNE_STANDIN_COPY_BYTES_PER_S", "1e8", 1);  // 10 ms for all
  std::vector<unsigned char> bytes(kBytes);
  CUevent ends[2] = {};
  for (CUevent& end : ends) ASSERT_EQ(driver().create_event(&end, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(driver().record_event(ends[0], streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(driver().copy_to_device(memory_, bytes.data(), kBytes, streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(driver().record_event(ends[1], streams_[0]), CUDA_SUCCESS);
  const Milliseconds given = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(driver().synchronize_stream(streams_[0]), CUDA_SUCCESS);
  float milliseconds = 0;
  ASSERT_EQ(driver().elapsed_time(&milliseconds, ends[0], ends[1]), CUDA_SUCCESS);
  EXPECT_GE(milliseconds, 15.0F);
  EXPECT_LT(milliseconds, 150.0F) << "a busy machine may be late, but not by so much";
  EXPECT_LT(given.count(), milliseconds) << "who gives work to a stream does not wait for it";
  for (CUevent end : ends) driver().destroy_event(end);
}

}  // namespace
}  // namespace commtune::tests
