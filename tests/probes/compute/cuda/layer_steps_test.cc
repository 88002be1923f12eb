#include "probes/compute/cuda/layer_steps.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <tuple>

#include "perfmodel/shipped_profiles.h"
#include "tests/probes/compute/cuda/recorded_math.h"

namespace commtune::compute {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::size_t bytes_of(Precision precision) { return precision == Precision::kBf16 ? 2 : 4; }

class ModelSteps : public testing::TestWithParam<std::tuple<std::string, Precision>> {
 protected:
  const std::string model_ = std::get<0>(GetParam());
  const Precision precision_ = std::get<1>(GetParam());
  const Architecture architecture_ = architecture_of(model_).value();
  const Profile tensors_ = shipped_profile(model_).value();
  RecordedMath math_{bytes_of(precision_)};
};

/// What is read and written lies within what was allocated, also with a batch of 3.
TEST_P(ModelSteps, StayWithinTheirMemory) {
  for (const int batch : {1, 3}) {
    steps_of(architecture_, tensors_, batch, precision_, math_);
    EXPECT_THAT(math_.complaints, IsEmpty());
  }
}

/// Forward as many products as the shapes have, backward twice as many: for the gradients of the inputs and
/// of the weights, except where the input is the data.
TEST_P(ModelSteps, MultiplyAsOftenAsTheShapesSay) {
  constexpr int kBatch = 2;
  const std::vector<LayerSteps> layers = steps_of(architecture_, tensors_, kBatch, precision_, math_);
  ASSERT_EQ(layers.size(), architecture_.layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    double expected = 0, expected_backward = 0;
    for (const Work& work : architecture_.layers[i].work) {
      const auto* convolution = std::get_if<Convolution>(&work);
      const bool sees_data = convolution != nullptr && !convolution->input_gradient;
      expected += kBatch * macs(work);
      expected_backward += kBatch * macs(work) * (sees_data ? 1 : 2);
    }
    math_.multiply_adds = 0;
    for (const Step& step : layers[i].forward) step();
    EXPECT_EQ(math_.multiply_adds, expected) << architecture_.layers[i].name;
    math_.multiply_adds = 0;
    for (const Step& step : layers[i].backward) step();
    EXPECT_EQ(math_.multiply_adds, expected_backward) << architecture_.layers[i].name;
  }
}

TEST_P(ModelSteps, UpdateEveryTensorOfALayerAtOnce) {
  const std::vector<LayerSteps> layers = steps_of(architecture_, tensors_, 1, precision_, math_);
  const bool is_adam = optimizer_of(architecture_) == Optimizer::kAdam;
  EXPECT_EQ(is_adam, model_.starts_with("bert"));
  std::uint64_t elements = 0;
  for (const KernelCall& call : math_.kernels) {
    const bool updates = call.name == (is_adam ? "commtune_profile_adam" : "commtune_profile_momentum");
    if (updates) elements += call.arguments.at(call.arguments.size() - 2);
  }
  EXPECT_EQ(elements * 4, tensors_.gradient_bytes().count);
  for (std::size_t i = 0; i < layers.size(); ++i)
    EXPECT_EQ(layers[i].update.size(), tensors_.layers[i].tensors.empty() ? 0U : 1U);
}

/// Kernels of activations are those of the precision's type; only in bf16 is anything cast.
TEST_P(ModelSteps, RunTheKernelsOfTheirPrecision) {
  steps_of(architecture_, tensors_, 1, precision_, math_);
  const bool is_bf16 = precision_ == Precision::kBf16;
  for (const KernelCall& call : math_.kernels) {
    EXPECT_FALSE(call.name.ends_with(is_bf16 ? "_forward_fp32" : "_bf16")) << call.name;
    EXPECT_GE(call.grid, 1U);
  }
}

/// ResNet-50 in fp32 at a batch of 64: 25.6 million parameters with gradient and momentum, 0.3 GB, and some
/// 40 million activations a sample, 10 GB; less than 16 GB leaves room on any card that trains it.
TEST(StepsOf, TakeTheMemoryOfTraining) {
  RecordedMath math(4);
  steps_of(architecture_of("resnet50").value(), shipped_profile("resnet50").value(), 64, Precision::kFp32,
           math);
  EXPECT_GT(math.allocated_bytes, 8e9);
  EXPECT_LT(math.allocated_bytes, 16e9);
}

Profile one_layer(Bytes parameters) {
  Profile profile;
  Layer layer;
  layer.name = "layer";
  layer.tensors.push_back({"layer.weight", parameters});
  profile.layers.push_back(layer);
  return profile;
}

TEST(StepsOf, CastWeightsBeforeAndTheirGradientAfterAProductInBf16) {
  RecordedMath math(2);
  const Architecture one{"one", "this test", {{"layer", {Linear{8, 4, 1}}}}};
  const std::vector<LayerSteps> layers = steps_of(one, one_layer(Bytes{144}), 2, Precision::kBf16, math);
  for (const Step& step : layers[0].forward) step();
  EXPECT_THAT(math.calls,
              ElementsAre("commtune_cast_fp32_bf16", "product", "commtune_profile_add_bias_bf16"));
  math.calls.clear();
  for (const Step& step : layers[0].backward) step();
  EXPECT_THAT(math.calls, ElementsAre("product", "product", "commtune_cast_bf16_fp32", "zero",
                                      "commtune_profile_bias_gradient_bf16"));
}

TEST(StepsOf, GoBackThroughALayersWorkInReverse) {
  RecordedMath math(4);
  const Architecture one{
      "one",
      "this test",
      {{"layer", {BatchNorm{8, 4}, Activation{Function::kRelu, 128}, Pooling{true, 8, 4}}}}};
  const std::vector<LayerSteps> layers = steps_of(one, one_layer(Bytes{64}), 2, Precision::kFp32, math);
  for (const Step& step : layers[0].backward) step();
  EXPECT_THAT(math.calls, ElementsAre("pooling backward", "commtune_profile_activation_backward_fp32",
                                      "batch normalisation backward"));
}

INSTANTIATE_TEST_SUITE_P(
    Shipped, ModelSteps,
    testing::Combine(testing::Values("resnet50", "vgg16", "bert_base", "bert_large"),
                     testing::Values(Precision::kFp32, Precision::kTf32, Precision::kBf16)),
    [](const auto& one) { return std::get<0>(one.param) + "_" + to_string(std::get<1>(one.param)); });

TEST(BlocksFor, CoverAllThreadsUntilTheGpuIsFull) {
  EXPECT_EQ(blocks_for(0, 256), 1U);
  EXPECT_EQ(blocks_for(257, 256), 2U);
  EXPECT_EQ(blocks_for(std::int64_t{1} << 40, 256), 2112U);
}

}  // namespace
}  // namespace commtune::compute
