#include "probes/load/cuda/gpu_step.h"

#include <gmock/gmock.h>

#include <thread>

#include "perfmodel/base/error.h"
#include "probes/load/compute_load.h"

namespace commtune::probes {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(GpuStep, EachTakesTimeOfTheGpu) {
  for (const double share : {1.0, 0.5, 1e-9}) {
    ComputeLoad load(make_gpu_step(0, share));
    EXPECT_THAT(load.run(5), AllOf(SizeIs(5), Each(Gt(Nanoseconds{0})))) << share;
  }
}

TEST(GpuStep, RunsInAThreadOfItsOwn) {
  ComputeLoad load(make_gpu_step(0, 1));
  std::vector<Nanoseconds> durations;
  std::jthread([&] { durations = load.run(3); }).join();
  EXPECT_THAT(durations, AllOf(SizeIs(3), Each(Gt(Nanoseconds{0}))));
}

TEST(GpuStep, ComesToAnEndWithStepsUnderWay) {
  ComputeLoad stopped(make_gpu_step(0, 1)), left(make_gpu_step(0, 1));
  stopped.start();
  left.start();
  stopped.stop();
}

TEST(GpuStep, NamesAGpuThatThereIsNot) {
  try {
    make_gpu_step(1000, 1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("GPU 1000"));
  }
}

}  // namespace
}  // namespace commtune::probes
