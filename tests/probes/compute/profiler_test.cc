#include "probes/compute/profiler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>

#include "perfmodel/base/error.h"
#include "probes/compute/kernel.h"

namespace commtune::compute {
namespace {

using testing::HasSubstr;

/// Something of everything, small.
Architecture tiny() {
  return {
      "tiny",
      "this test",
      {{"conv",
        {Convolution{3, 8, 8, 3, 1, 1, true, false}, Activation{Function::kRelu, 512}, Pooling{true, 8, 8}}},
       {"conv2", {Convolution{8, 8, 4, 1, 2, 0}}},
       {"bn", {BatchNorm{8, 4}, Addition{128}}},
       {"norm", {LayerNorm{16, 4}}},
       {"words", {Embedding{32, 16, 4}}},
       {"dense", {Linear{16, 16, 4}, Attention{2, 4, 16}, Activation{Function::kGelu, 64}}},
       {"again", {Linear{16, 16, 4}, Softmax{16, 4}}}}};
}

Profile tensors() {
  Profile profile;
  profile.model = "tiny";
  profile.batch = 2;
  for (const ComputeLayer& layer : tiny().layers) {
    Layer one;
    one.name = layer.name;
    one.tensors.push_back({layer.name + ".weight", Bytes{64}});
    profile.layers.push_back(one);
  }
  return profile;
}

ProfilerOptions quick() {
  ProfilerOptions options;
  options.budget = Seconds{0.2};
  options.threads = 1;
  options.device = "a processor";
  return options;
}

TEST(ProfileLayers, TimesEveryLayerBothWays) {
  const Profile profile = profile_layers(tiny(), tensors(), quick());
  ASSERT_EQ(profile.layers.size(), 7U);
  for (const Layer& layer : profile.layers) {
    EXPECT_GT(layer.forward.count(), 0) << layer.name;
    EXPECT_GT(layer.backward.count(), 0) << layer.name;
    EXPECT_EQ(layer.tensors.size(), 1U);
  }
  EXPECT_EQ(profile.batch, 2);
}

TEST(ProfileLayers, SaysWhatMeasuredAndHow) {
  ProfilerOptions options = quick();
  options.batch = 3;
  const Profile profile = profile_layers(tiny(), tensors(), options);
  EXPECT_EQ(profile.batch, 3);
  EXPECT_EQ(profile.origin.how, "measured");
  EXPECT_EQ(profile.origin.device, "a processor, 1 threads, float32");
  EXPECT_THAT(profile.origin.source, HasSubstr(library_version()));
  EXPECT_THAT(profile.origin.note, HasSubstr("12 shapes"));  // the linear layer's counts once
}

TEST(ProfileLayers, AskBeforeEachShapeWhetherToGoOn) {
  int asked = 0;
  const auto thrice = [&](const ProfilerProgress& progress) {
    EXPECT_FALSE(progress.what.empty());
    return ++asked < 3;
  };
  try {
    profile_layers(tiny(), tensors(), quick(), thrice);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
    EXPECT_EQ(asked, 3);
  }
}

TEST(ProfileLayers, RefusesTensorsOfAnotherModel) {
  Profile other = tensors();
  other.layers.back().name = "different";
  EXPECT_THROW(profile_layers(tiny(), other, quick()), Error);
}

TEST(ProfileLayers, MoreProductsTakeLonger) {
  // 64 times the products, in processor time of one thread: what else the machine does takes none of it, and
  // nobody waits for another thread.
  const int threads_before = threads();
  set_threads(1);
  const Kernel small = make_kernel(Linear{128, 128, 32}, 1), large = make_kernel(Linear{1024, 1024, 32}, 1);
  const auto least = [](const std::function<void()>& run) {
    auto fastest = std::numeric_limits<std::clock_t>::max();
    for (int i = 0; i < 50; ++i) {
      const std::clock_t start = std::clock();
      run();
      fastest = std::min(fastest, std::clock() - start);
    }
    return fastest;
  };
  EXPECT_GT(least(large.forward), least(small.forward));
  set_threads(threads_before);
}

TEST(ProfilerOptions, NameTheFieldThatIsWrong) {
  ProfilerOptions options;
  options.batch = -1;
  try {
    options.check();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("batch = -1"));
  }
}

}  // namespace
}  // namespace commtune::compute
