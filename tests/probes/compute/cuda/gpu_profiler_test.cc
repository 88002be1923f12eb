#include "probes/compute/cuda/gpu_profiler.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "probes/compute/cuda/library_folders.h"

namespace commtune::compute {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Layer i takes i + 1 microseconds forward, twice as long backward, and a tenth of it to update; each third
/// pass is ten times as slow.
class MadeUpModel final : public GpuModel {
 public:
  explicit MadeUpModel(std::size_t layers) : layers_(layers) {}
  std::vector<LayerTimes> layer_pass() override {
    const double factor = ++passes % 3 == 0 ? 1e-5 : 1e-6;
    std::vector<LayerTimes> times(layers_);
    for (std::size_t i = 0; i < layers_; ++i) {
      const Seconds one{factor * static_cast<double>(i + 1)};
      times[i] = {one, 2 * one, one / 10};
    }
    return times;
  }
  Seconds whole_pass() override {
    ++whole_passes;
    return Seconds{1e-3};
  }
  std::string device() const override { return "a made-up GPU"; }
  std::string libraries() const override { return "cuDNN 9.9.9"; }
  std::string layout() const override { return "NHWC"; }

  int passes = 0, whole_passes = 0;

 private:
  const std::size_t layers_;
};

class GpuProfiler : public testing::Test {
 protected:
  Profile profile(const GpuProfilerOptions& options) {
    return profile_of_model(model_, architecture_, tensors_, options);
  }
  static GpuProfilerOptions quick() {
    GpuProfilerOptions options;
    options.warm_up = Seconds{0.001};
    options.passes = 9;
    options.max_passes = 12;
    return options;
  }
  const Architecture architecture_ = architecture_of("resnet50").value();
  const Profile tensors_ = shipped_profile("resnet50").value();
  MadeUpModel model_{architecture_.layers.size()};
};

TEST_F(GpuProfiler, TakesEachLayersMedian) {
  const Profile found = profile(quick());
  ASSERT_EQ(found.layers.size(), tensors_.layers.size());
  EXPECT_NEAR(found.layers[0].forward.count(), 1e-6, 1e-12);
  EXPECT_NEAR(found.layers[4].forward.count(), 5e-6, 1e-12);
  EXPECT_NEAR(found.layers[4].backward.count(), 1e-5, 1e-12);
  EXPECT_NEAR(found.layers[4].update.count(), 5e-7, 1e-12);
  EXPECT_EQ(found.gradient_bytes(), tensors_.gradient_bytes());
}

TEST_F(GpuProfiler, SaysWhatMeasuredAndHow) {
  GpuProfilerOptions options = quick();
  options.model.batch = 3;
  options.model.precision = Precision::kBf16;
  const Profile found = profile(options);
  EXPECT_EQ(found.batch, 3);
  EXPECT_EQ(found.type, DataType::kFloat32);
  EXPECT_EQ(found.origin.how, "measured");
  EXPECT_EQ(found.origin.device, "a made-up GPU");
  EXPECT_THAT(found.origin.source, HasSubstr("cuDNN 9.9.9"));
  EXPECT_THAT(found.origin.note, HasSubstr("12 training steps"));
  EXPECT_THAT(found.origin.note, HasSubstr("autocast"));
  EXPECT_EQ(commtune::profile_from_json(to_json(found)).origin.note, found.origin.note);
}

/// Every third pass is slow: the interval stays wide, and the most passes end it.
TEST_F(GpuProfiler, GoesOnWhileTheSumIsWide) {
  profile(quick());
  EXPECT_EQ(model_.passes, 12);
}

TEST_F(GpuProfiler, StopsWhenTheBudgetIsSpent) {
  GpuProfilerOptions options = quick();
  options.budget = Seconds{1e-9};
  profile(options);
  EXPECT_EQ(model_.passes, 1);
}

TEST_F(GpuProfiler, WarmsUpForAsLongAsItIsTold) {
  warm_up(model_, Seconds{0.01});
  EXPECT_GE(model_.whole_passes, 10);
  EXPECT_EQ(model_.passes, 0);
}

TEST_F(GpuProfiler, AsksWhetherToGoOn) {
  int asked = 0;
  const auto twice = [&](const GpuProfilerProgress&) { return ++asked < 2; };
  try {
    profile_of_model(model_, architecture_, tensors_, quick(), twice);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
  }
}

TEST_F(GpuProfiler, RefusesTensorsOfAnotherModel) {
  EXPECT_THROW(profile_of_model(model_, architecture_, shipped_profile("vgg16").value(), quick()), Error);
}

TEST_F(GpuProfiler, NamesTheOptionThatIsWrong) {
  GpuProfilerOptions options;
  options.model.batch = -1;
  try {
    options.check();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("batch = -1"));
  }
}

/// Where the machine that runs this has a GPU and cuDNN there is nothing to refuse.
TEST(MakeGpuModel, SaysInOneLineWhyItCannot) {
  const std::string why = why_no_gpu_model({});
  if (why.empty()) GTEST_SKIP() << "this machine has a GPU, cuDNN and cuBLAS";
  EXPECT_EQ(why.find('\n'), std::string::npos);
  try {
    profile_on_gpu(architecture_of("resnet50").value(), shipped_profile("resnet50").value(), {});
    FAIL() << "it made one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(error.what(), why);
  }
}

TEST(Precision, IsNamedAsItIsPrinted) {
  for (const char* name : {"fp32", "tf32", "bf16"}) EXPECT_EQ(to_string(precision_named(name).value()), name);
  EXPECT_FALSE(precision_named("fp64").has_value());
}

class LibraryFolders : public testing::Test {
 protected:
  LibraryFolders()
      : root_(std::filesystem::path(testing::TempDir()) /
              ("commtune_library_folders_" + std::to_string(getpid()))) {}
  ~LibraryFolders() override { std::filesystem::remove_all(root_); }
  std::string folder(const std::string& name) {
    std::filesystem::create_directories(root_ / name);
    return (root_ / name).string();
  }
  const std::filesystem::path root_;
};

TEST_F(LibraryFolders, AreThoseOfTheFirstPythonsPackages) {
  const std::string before = folder("empty/bin"), bin = folder("venv/bin"), later = folder("other/bin");
  for (const std::string& path : {bin, later}) std::ofstream(path + "/python3") << "";
  const std::string cublas = folder("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
  const std::string cudnn = folder("venv/lib/python3.12/site-packages/nvidia/cudnn/lib");
  folder("venv/lib/python3.12/site-packages/nvidia/headers/include");
  folder("other/lib/python3.12/site-packages/nvidia/cudnn/lib");
  std::string path = before;
  path += ":" + bin;
  path += ":" + later;
  EXPECT_THAT(python_library_folders(path), ElementsAre(cublas, cudnn));
}

TEST_F(LibraryFolders, AreNoneWithoutAPython) {
  EXPECT_THAT(python_library_folders(folder("empty/bin")), IsEmpty());
  EXPECT_THAT(python_library_folders(""), IsEmpty());
}

}  // namespace
}  // namespace commtune::compute
