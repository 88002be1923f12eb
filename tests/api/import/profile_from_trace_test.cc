#include "api/import/profile_from_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/import/trace_reader.h"
#include "api/question/models.h"
#include "tests/api/import/made_trace.h"
#include "tests/perfmodel/synthetic_profile.h"

namespace commtune::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Profile profile_of(const std::vector<nlohmann::json>& events, const TraceImport& options = {}) {
  return profile_from_trace(read_trace(kineto_text(events), "folder/net.json"), options, "folder/net.json");
}

std::vector<std::uint64_t> sizes_of(const Profile& profile) {
  std::vector<std::uint64_t> sizes;
  for (const TensorRef& tensor : tensors_of(profile)) sizes.push_back(tensor.bytes.count);
  return sizes;
}

TEST(ProfileFromTrace, LayersTensorsAndTimesAreTheTraces) {
  const Profile profile = profile_of(made_iteration(), {{}, 16});
  EXPECT_EQ(profile.model, "net");
  EXPECT_EQ(profile.batch, 16);
  EXPECT_EQ(profile.type, DataType::kFloat32);
  EXPECT_EQ(profile.origin.how, "measured");
  EXPECT_THAT(profile.origin.source, HasSubstr("net.json: 1 iteration of a trace"));
  // 4 x 3, then 10 x 4 and 10 floats: the weight before the bias.
  EXPECT_THAT(sizes_of(profile), ElementsAre(48, 160, 40));
  ASSERT_EQ(profile.layers.size(), 2U);
  EXPECT_EQ(profile.layers[1].tensors[0].name, "aten::linear #1.0");
  EXPECT_NEAR(profile.layers[0].forward.count(), 150e-6, 1e-12);
  EXPECT_NEAR(profile.layers[1].forward.count(), 150e-6, 1e-12);
  // 300 to 420 us, when the linear layer's last gradient is there; then to 540.
  EXPECT_NEAR(profile.layers[1].backward.count(), 120e-6, 1e-12);
  EXPECT_NEAR(profile.layers[0].backward.count(), 120e-6, 1e-12);
  EXPECT_EQ(digest(profile_from_json(to_json(profile))), digest(profile));
}

/// The trace's own sizes by the names of a model, whose convolution has a layer without parameters behind it.
Profile model() {
  Profile made = synthetic_profile(3, Bytes{48}, Seconds{1}, Seconds{1});
  made.model = "net";
  made.batch = 32;
  made.layers[0].tensors = {{"stem.weight", Bytes{48}}};
  made.layers[1].tensors.clear();
  made.layers[2].tensors = {{"head.bias", Bytes{40}}, {"head.weight", Bytes{160}}};
  return made;
}

TEST(ProfileFromTrace, AModelLendsNamesAndSizes) {
  const Profile profile = profile_of(made_iteration(), {model(), 0});
  EXPECT_EQ(layout_digest(profile), layout_digest(model()));
  EXPECT_EQ(profile.batch, 32);
  EXPECT_NEAR(profile.layers[0].forward.count(), 150e-6, 1e-12);
  EXPECT_EQ(profile.layers[1].forward.count(), 0);
  EXPECT_NEAR(profile.layers[2].forward.count(), 150e-6, 1e-12);
  EXPECT_NEAR(profile.layers[2].backward.count(), 120e-6, 1e-12);
  EXPECT_NEAR(profile.forward().count(), 300e-6, 1e-12);
  EXPECT_NEAR(profile.backward().count(), 240e-6, 1e-12);
}

TEST(ProfileFromTrace, GradientsOfATracesLayerMayBeOfSeveralOfTheModels) {
  Profile apart = model();
  apart.layers[1].tensors = {{"head.bias", Bytes{40}}};
  apart.layers[2].tensors = {{"head.weight", Bytes{160}}};
  const Profile profile = profile_of(made_iteration(), {apart, 0});
  EXPECT_NEAR(profile.layers[1].forward.count(), 150e-6, 1e-12);  // the first of the two
  EXPECT_EQ(profile.layers[2].forward.count(), 0);
  // The weight's gradient is there at 420 us, after the bias's.
  EXPECT_NEAR(profile.layers[2].backward.count(), 120e-6, 1e-12);
  EXPECT_EQ(profile.layers[1].backward.count(), 0);
}

TEST(ProfileFromTrace, LayersMayRunInAnotherOrderThanTheModels) {
  Profile swapped = model();
  std::swap(swapped.layers[0], swapped.layers[2]);
  swapped.layers[0].forward = swapped.layers[2].forward = Seconds{0};
  const Profile profile = profile_of(made_iteration(), {swapped, 0});
  EXPECT_EQ(layout_digest(profile), layout_digest(swapped));
  EXPECT_NEAR(profile.layers[0].forward.count(), 150e-6, 1e-12);
  // The stem is the last layer of the model and the last whose gradient is there: nothing is left for the
  // others.
  EXPECT_NEAR(profile.layers[2].backward.count(), 240e-6, 1e-12);
  EXPECT_EQ(profile.layers[0].backward.count(), 0);
}

TEST(ProfileFromTrace, TimesAreMediansOfTheIterations) {
  std::vector<nlohmann::json> events;
  // The second iteration's linear layer begins 60 us later, the third's 20 us.
  for (int i = 0; i < 3; ++i) {
    std::vector<nlohmann::json> more = made_iteration(1000 * i, 4 * i);
    for (const std::size_t linear : {std::size_t{3}, std::size_t{4}}) {
      const int later = i == 1 ? 60 : i == 2 ? 20 : 0;
      more[linear]["ts"] = more[linear]["ts"].get<int>() + later;
    }
    events.insert(events.end(), more.begin(), more.end());
  }
  const Profile profile = profile_of(events);
  EXPECT_NEAR(profile.layers[0].forward.count(), 170e-6, 1e-12);
  EXPECT_NEAR(profile.layers[1].forward.count(), 130e-6, 1e-12);
  EXPECT_THAT(profile.origin.source, HasSubstr("3 iterations"));
}

TEST(ProfileFromTrace, WithoutSizesAModelIsNeeded) {
  std::vector<nlohmann::json> events = made_iteration();
  for (nlohmann::json& event : events) event["args"].erase("Input Dims");
  expect_bad_input([&] { profile_of(events); },
                   "its gradient's size was not recorded: record with record_shapes=True");
  EXPECT_EQ(layout_digest(profile_of(events, {model(), 0})), layout_digest(model()));
}

TEST(ProfileFromTrace, WhatIsNotTheModelIsNamed) {
  Profile fewer = model();
  fewer.layers[2].tensors.pop_back();
  expect_bad_input(
      [&] {
        profile_of(made_iteration(), {fewer, 0});
      },
      "the trace has 3 gradients an iteration, net has 2: name the model that was traced");
  Profile larger = model();
  larger.layers[2].tensors[1].bytes = Bytes{164};
  expect_bad_input(
      [&] {
        profile_of(made_iteration(), {larger, 0});
      },
      "folder/net.json: traceEvents[13] \"torch::autograd::AccumulateGrad\": neither this gradient nor a "
      "later one has the 164 B of head.weight of net: name the model that was traced");
}

TEST(ProfileFromTrace, IterationsThatDifferAreNamed) {
  std::vector<nlohmann::json> events = made_iteration();
  std::vector<nlohmann::json> other = made_iteration(1000, 4);
  other[13]["args"]["Input Dims"] = {{10, 5}};
  events.insert(events.end(), other.begin(), other.end());
  expect_bad_input([&] { profile_of(events); },
                   "traceEvents[29] \"torch::autograd::AccumulateGrad\": iteration 2 has 3 gradients, and "
                   "from here on others");
}

TEST(ProfileFromTrace, TypesThatProfilesDoNotHaveAreRefused) {
  std::vector<nlohmann::json> events = made_iteration();
  for (nlohmann::json& event : events)
    if (event["args"].contains("Input type")) event["args"]["Input type"] = {"double"};
  expect_bad_input([&] { profile_of(events); },
                   "its gradient is of double: profiles have float32, float16 and bfloat16");
  for (nlohmann::json& event : events)
    if (event["args"].contains("Input type")) event["args"]["Input type"] = {"c10::BFloat16"};
  EXPECT_THAT(sizes_of(profile_of(events)), ElementsAre(24, 80, 20));
}

Profile recorded(const std::string& name) {
  const std::string path = COMMTUNE_TRACES "/" + name;
  return profile_from_trace(read_trace(read_text_file(path), path), {}, path);
}

// A convolution of 8 x 3 x 3 x 3, a norm of 8, linear layers of 16 x 8 and 10 x 16, all with biases.
TEST(ProfileFromTrace, ARecordedTraceHasTheModulesThatRan) {
  const Profile profile = recorded("profiler.json");
  std::vector<std::string> names;
  for (const Layer& layer : profile.layers) {
    names.push_back(layer.name);
    EXPECT_GT(layer.forward.count(), 0) << layer.name;
    EXPECT_GT(layer.backward.count(), 0) << layer.name;
  }
  EXPECT_THAT(names, ElementsAre("Conv2d_0", "BatchNorm2d_0", "Linear_0", "Linear_1"));
  EXPECT_THAT(sizes_of(profile), ElementsAre(864, 32, 32, 32, 512, 64, 640, 40));
  EXPECT_THAT(profile.origin.source, HasSubstr("2 iterations"));
}

TEST(ProfileFromTrace, ARecordedChakraTraceHasTheSameGradientsAndBackwardTimes) {
  const Profile chakra = recorded("chakra.json"), profiler = recorded("profiler.json");
  EXPECT_EQ(sizes_of(chakra), sizes_of(profiler));
  ASSERT_EQ(chakra.layers.size(), profiler.layers.size());
  EXPECT_EQ(chakra.layers[0].name, "aten::conv2d #0");
  for (std::size_t i = 0; i < chakra.layers.size(); ++i)
    EXPECT_NEAR(chakra.layers[i].backward.count(), profiler.layers[i].backward.count(), 1e-9);
}

}  // namespace
}  // namespace commtune::api
