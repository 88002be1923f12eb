#include "api/import/traced_iterations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/import/trace_reader.h"
#include "tests/api/import/made_trace.h"

namespace commtune::api {
namespace {

std::vector<TracedIteration> iterations_of(const std::vector<nlohmann::json>& events) {
  return traced_iterations(read_trace(kineto_text(events), "t.json"), "t.json");
}

std::vector<nlohmann::json> joined(std::vector<nlohmann::json> first,
                                   const std::vector<nlohmann::json>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(TracedIterations, ALayerLastsUntilTheNextOneBegins) {
  const std::vector<TracedIteration> all = iterations_of(made_iteration());
  ASSERT_EQ(all.size(), 1U);
  const TracedIteration& one = all.front();
  ASSERT_EQ(one.layers.size(), 2U);
  EXPECT_EQ(one.layers[0].name, "aten::conv2d #0");
  EXPECT_EQ(one.layers[1].name, "aten::linear #1");
  // The ReLU counts for the convolution, the loss for the linear layer: 0 to 150 and 150 to 300 us.
  EXPECT_NEAR(one.layers[0].forward.count(), 150e-6, 1e-12);
  EXPECT_NEAR(one.layers[1].forward.count(), 150e-6, 1e-12);
  EXPECT_NEAR(one.turned.count(), 300e-6, 1e-12);
  EXPECT_NEAR(one.ended.count(), 540e-6, 1e-12);
}

TEST(TracedIterations, AGradientIsOfTheFunctionThatRanBeforeIt) {
  const TracedIteration one = iterations_of(made_iteration()).front();
  ASSERT_EQ(one.gradients.size(), 3U);
  EXPECT_EQ(one.gradients[0].layer, 1U);
  EXPECT_EQ(one.gradients[1].layer, 1U);
  EXPECT_EQ(one.gradients[2].layer, 0U);
  EXPECT_NEAR(one.gradients[0].complete.count(), 410e-6, 1e-12);
  EXPECT_NEAR(one.gradients[1].complete.count(), 420e-6, 1e-12);
  EXPECT_NEAR(one.gradients[2].complete.count(), 540e-6, 1e-12);
}

nlohmann::json module_call(const std::string& name, int start, int duration) {
  return {{"ph", "X"},   {"cat", "python_function"}, {"name", "nn.Module: " + name}, {"tid", 7},
          {"ts", start}, {"dur", duration}};
}

TEST(TracedIterations, ModulesAreTheLayersWhereTheyWereTraced) {
  std::vector<nlohmann::json> events = made_iteration(100);
  for (const auto& [name, start, duration] : {std::tuple("Net_0", 80, 225), std::tuple("Conv2d_0", 90, 115),
                                              std::tuple("ReLU_0", 208, 30), std::tuple("Linear_0", 240, 62)})
    events.push_back(module_call(name, start, duration));
  const TracedIteration one = iterations_of(events).front();
  ASSERT_EQ(one.layers.size(), 2U);
  EXPECT_EQ(one.layers[0].name, "Conv2d_0");
  EXPECT_EQ(one.layers[1].name, "Linear_0");
  // From the call of the whole model on, at 80, to the linear layer's operator at 250.
  EXPECT_NEAR(one.layers[0].forward.count(), 170e-6, 1e-12);
}

nlohmann::json kernel(const std::string& name, int start, int duration, int launcher) {
  return {{"ph", "X"},
          {"cat", "kernel"},
          {"name", name},
          {"tid", 3},
          {"ts", start},
          {"dur", duration},
          {"args", {{"External id", launcher}}}};
}

TEST(TracedIterations, OnADeviceTimesAreThoseOfItsKernels) {
  std::vector<nlohmann::json> events = made_iteration();
  events.push_back(kernel("conv", 1000, 400, 1));
  events.push_back(kernel("relu", 1400, 100, 2));
  events.push_back(kernel("gemm", 1500, 200, 3));
  events.push_back(kernel("loss", 1800, 50, 101));
  events.push_back(kernel("gemm", 1850, 150, 102));
  events.push_back(kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2000, 7000, 102));
  events.push_back(kernel("conv", 2000, 600, 103));
  const TracedIteration one = iterations_of(events).front();
  EXPECT_NEAR(one.layers[0].forward.count(), 500e-6, 1e-12);  // 1000 to 1500
  EXPECT_NEAR(one.layers[1].forward.count(), 300e-6, 1e-12);  // to the first of the backward pass
  EXPECT_NEAR((one.gradients[0].complete - one.turned).count(), 200e-6, 1e-12);  // 1800 to 2000
  EXPECT_NEAR((one.gradients[2].complete - one.turned).count(), 800e-6, 1e-12);
  EXPECT_NEAR((one.ended - one.turned).count(), 800e-6, 1e-12);
}

TEST(TracedIterations, AnAnnotationAroundAllOfItIsNoOperator) {
  std::vector<nlohmann::json> events = made_iteration(10);
  events.push_back(traced("ProfilerStep#1", 0, 1000));
  EXPECT_EQ(iterations_of(events).front().layers.size(), 2U);
}

TEST(TracedIterations, AForwardPassAfterABackwardPassBeginsAnother) {
  EXPECT_EQ(iterations_of(joined(made_iteration(), made_iteration(1000, 4))).size(), 2U);
  // Forward passes alone are none: an evaluation, and what the trace's end cut off.
  const std::vector<nlohmann::json> passes = made_iteration(2000, 8);
  const std::vector<nlohmann::json> forward(passes.begin(), passes.begin() + 6);
  EXPECT_EQ(iterations_of(joined(made_iteration(), forward)).size(), 1U);
}

TEST(TracedIterations, WhatDoesNotFitTogetherIsNamed) {
  std::vector<nlohmann::json> headless = made_iteration();
  headless.erase(headless.begin());
  expect_bad_input(
      [&] { iterations_of(headless); },
      "t.json: traceEvents[8] \"autograd::engine::evaluate_function: ConvolutionBackward0\": no operator "
      "of the forward pass has its sequence number 0: begin the trace before an iteration's forward pass");
  const std::vector<nlohmann::json> all = made_iteration();
  expect_bad_input(
      [&] {
        iterations_of({all.begin(), all.begin() + 6});
      },
      "t.json: traceEvents: no \"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad\"");
  expect_bad_input([&] { iterations_of(joined(accumulated(5, 10, {4}), made_iteration(100))); },
                   "no function of the backward pass goes before it");
}

}  // namespace
}  // namespace commtune::api
