#pragma once
// A trace whose times are known: one iteration of a convolution, something without parameters, a linear layer
// and a loss, as PyTorch's profiler writes it.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/perfmodel/throws.h"

namespace commtune::api {

inline nlohmann::json traced(const std::string& name, int start, int duration,
                             std::optional<int> sequence = {},
                             nlohmann::json more = nlohmann::json::object()) {
  if (sequence) more["Sequence number"] = *sequence;
  return {{"ph", "X"}, {"cat", "cpu_op"}, {"name", name},    {"pid", 7},
          {"tid", 7},  {"ts", start},     {"dur", duration}, {"args", std::move(more)}};
}

inline nlohmann::json evaluated(const std::string& name, int start, int duration,
                                std::optional<int> sequence = {},
                                nlohmann::json more = nlohmann::json::object()) {
  return traced("autograd::engine::evaluate_function: " + name, start, duration, sequence, std::move(more));
}

/// A gradient that is there at start + duration.
inline std::vector<nlohmann::json> accumulated(int start, int duration, const std::vector<int>& shape,
                                               const std::string& type = "float") {
  return {evaluated("torch::autograd::AccumulateGrad", start, duration),
          traced("torch::autograd::AccumulateGrad", start + 1, duration - 2, {},
                 {{"Input Dims", nlohmann::json::array({shape})},
                  {"Input type", nlohmann::json::array({type})}})};
}

/// Forward, from 0 us on: convolution 0 to 100, ReLU 110 to 130, linear 150 to 200, loss 210 to 230. Backward
/// from 300 on; the linear layer's gradients are there at 410 (bias) and 420 (weight), the convolution's at
/// 540.
inline std::vector<nlohmann::json> made_iteration(int at = 0, int first_sequence = 0) {
  std::vector<nlohmann::json> events = {
      traced("aten::conv2d", at + 0, 100, first_sequence, {{"External id", first_sequence + 1}}),
      traced("aten::empty", at + 10, 5),
      traced("aten::relu", at + 110, 20, first_sequence + 1, {{"External id", first_sequence + 2}}),
      traced("aten::linear", at + 150, 50, first_sequence + 2),
      traced("aten::addmm", at + 160, 30, first_sequence + 2, {{"External id", first_sequence + 3}}),
      traced("aten::mse_loss", at + 210, 20, first_sequence + 3),
      evaluated("MseLossBackward0", at + 300, 40, first_sequence + 3,
                {{"External id", first_sequence + 101}}),
      evaluated("AddmmBackward0", at + 345, 50, first_sequence + 2, {{"External id", first_sequence + 102}}),
      evaluated("ReluBackward0", at + 430, 20, first_sequence + 1),
      evaluated("ConvolutionBackward0", at + 460, 60, first_sequence,
                {{"External id", first_sequence + 103}})};
  for (const auto& gradient : {accumulated(at + 400, 10, {10}), accumulated(at + 412, 8, {10, 4}),
                               accumulated(at + 530, 10, {4, 3})})
    events.insert(events.end(), gradient.begin(), gradient.end());
  return events;
}

inline std::string kineto_text(const std::vector<nlohmann::json>& events,
                               nlohmann::json document = nlohmann::json::object()) {
  document["traceEvents"] = events;
  return document.dump();
}

/// The refusal of bad input says this.
template <typename Action>
void expect_bad_input(const Action& action, const std::string& text) {
  EXPECT_THAT(bad_input(action), testing::HasSubstr(text));
}

}  // namespace commtune::api
