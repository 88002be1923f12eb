#include "probes/host/gpu_facts.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "executor/memory/cuda/device.h"
#include "executor/memory/cuda/gpu_memory.h"
#include "perfmodel/base/error.h"

namespace commtune::probes {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::Key;
using ::testing::SizeIs;

class GpuFactsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("COMMTUNE_STANDIN_GPUS", "2", 1);
    setenv("COMMTUNE_STANDIN_TAKEN", "1", 1);
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override {
    unsetenv("COMMTUNE_STANDIN_GPUS");
    unsetenv("COMMTUNE_STANDIN_TAKEN");
  }
};

TEST_F(GpuFactsTest, TellWhatDecidesHowFastEachIs) {
  const GpuFacts facts = gpu_facts();
  EXPECT_THAT(facts.what, SizeIs(static_cast<std::size_t>(gpu_count())));
  for (const auto& [name, text] : facts.what) {
    EXPECT_THAT(name, ContainsRegex("^gpu_[0-9]+$"));
    EXPECT_THAT(text, ContainsRegex(", [0-9]+ MiB, at most [0-9]+ and [0-9]+ MHz"));
  }
  EXPECT_THAT(facts.releases, Contains(Key("nvidia_driver")));
  EXPECT_EQ(facts.what, gpu_facts().what) << "a fingerprint is made of it";
}

TEST_F(GpuFactsTest, AreThoseOfAGpuTooThatAnotherProcessHasToItself) {
  if (cuda::GpuTraits(0).name() != "commtune stand-in GPU") GTEST_SKIP() << "none is taken";
  EXPECT_THROW(cuda::Gpu(1), Error);
  EXPECT_THAT(gpu_facts().what, Contains(Key("gpu_1")));
}

}  // namespace
}  // namespace commtune::probes
