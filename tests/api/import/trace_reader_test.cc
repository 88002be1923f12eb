#include "api/import/trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/api/import/made_trace.h"

namespace commtune::api {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const TraceEvent& named(const RecordedTrace& trace, std::string_view name) {
  return *std::ranges::find(trace.events, name, &TraceEvent::name);
}

TEST(TraceReader, KinetoEventsAreWhatTheirNamesSay) {
  const RecordedTrace trace = read_trace(kineto_text(made_iteration(), {{"host_name", "n1"}}), "t.json");
  EXPECT_EQ(trace.list, "traceEvents");
  EXPECT_EQ(trace.device, "processor of n1");
  const TraceEvent& linear = named(trace, "aten::linear");
  EXPECT_EQ(linear.kind, TraceEventKind::kOperator);
  EXPECT_NEAR(linear.start.count(), 150e-6, 1e-12);
  EXPECT_NEAR(linear.end.count(), 200e-6, 1e-12);
  EXPECT_EQ(linear.sequence, 2);
  EXPECT_EQ(linear.thread, 7);
  EXPECT_EQ(named(trace, "autograd::engine::evaluate_function: AddmmBackward0").kind,
            TraceEventKind::kEvaluation);
  const TraceEvent& gradient = named(trace, "torch::autograd::AccumulateGrad");
  EXPECT_EQ(gradient.kind, TraceEventKind::kGradient);
  EXPECT_EQ(gradient.type, "float");
  EXPECT_THAT(gradient.shape, testing::ElementsAre(10));
}

TEST(TraceReader, AListOfEventsAloneIsATraceToo) {
  EXPECT_EQ(read_trace(nlohmann::json(made_iteration()).dump(), "t.json").events.size(),
            made_iteration().size());
}

TEST(TraceReader, KernelsKnowWhatLaunchedThem) {
  std::vector<nlohmann::json> events = made_iteration();
  events.push_back({{"ph", "X"},
                    {"cat", "kernel"},
                    {"name", "sgemm"},
                    {"ts", 1000},
                    {"dur", 10},
                    {"args", {{"External id", 3}}}});
  const RecordedTrace trace =
      read_trace(kineto_text(events, {{"deviceProperties", {{{"name", "NVIDIA H100"}}}}}), "t.json");
  EXPECT_EQ(trace.device, "NVIDIA H100");
  const TraceEvent& kernel = named(trace, "sgemm");
  EXPECT_EQ(kernel.kind, TraceEventKind::kDevice);
  ASSERT_TRUE(kernel.launcher);
  EXPECT_EQ(trace.events[*kernel.launcher].name, "aten::addmm");
}

nlohmann::json node(int id, int parent, const std::string& name, int sequence) {
  return {{"id", id},
          {"name", name},
          {"ctrl_deps", parent},
          {"inputs", nlohmann::json::object()},
          {"attrs",
           {{{"name", "seq_id"}, {"type", "int64"}, {"value", sequence}},
            {{"name", "tid"}, {"type", "uint64"}, {"value", 1}}}}};
}

nlohmann::json with_times(nlohmann::json node, int start, int duration) {
  node["ts"] = start;
  node["inclusive_dur"] = duration;
  return node;
}

TEST(TraceReader, ChakraNumbersTheEvaluationByTheFunctionInsideIt) {
  nlohmann::json gradient = with_times(node(6, 5, "torch::autograd::AccumulateGrad", -1), 61, 5);
  gradient["inputs"] = {{"shapes", nlohmann::json::array({{10, 4}})}, {"types", {"Tensor(c10::BFloat16)"}}};
  const nlohmann::json document = {
      {"schema", "1.1.1-chakra.0.0.4"},
      {"nodes",
       {node(1, 1, "[pytorch|profiler|execution_trace|process]", -1),
        with_times(node(2, 1, "aten::linear", 9), 5, 20), with_times(node(4, 3, "AddmmBackward0", 9), 41, 10),
        with_times(node(3, 1, "autograd::engine::evaluate_function: AddmmBackward0", -1), 40, 15),
        gradient}}};
  const RecordedTrace trace = read_trace(document.dump(), "t.json");
  EXPECT_EQ(trace.list, "nodes");
  EXPECT_EQ(trace.events.size(), 4U);  // what has no time is not there
  EXPECT_EQ(named(trace, "autograd::engine::evaluate_function: AddmmBackward0").sequence, 9);
  EXPECT_EQ(named(trace, "torch::autograd::AccumulateGrad").type, "c10::BFloat16");
  EXPECT_THAT(named(trace, "torch::autograd::AccumulateGrad").shape, testing::ElementsAre(10, 4));
  EXPECT_EQ(named(trace, "torch::autograd::AccumulateGrad").position, 4U);
}

TEST(TraceReader, WhatCannotBeReadSaysHowToConvertIt) {
  const auto read = [](std::string_view text) { return [text] { read_trace(text, "t.json"); }; };
  expect_bad_input(read("\x1f\x8b\x08"), "t.json: is compressed: unpack it with gunzip");
  expect_bad_input(read(" \n"), "t.json: is empty");
  expect_bad_input(read("\x0a\x05\x12"), "a Chakra trace as protobuf (.et) is not read; chakra_trace_link");
  expect_bad_input(read(R"({"version": "0.0.4"}{"id": "1", "type": "COMP_NODE"})"),
                   "that chakra_jsonizer wrote");
  expect_bad_input(read(R"({"steps": []})"), "has neither \"traceEvents\"");
  expect_bad_input(
      read(R"({"nodes": [{"id": 1, "name": "aten::mm", "ctrl_deps": 1}]})"),
      "none has a time (\"ts\"): PyTorch's execution trace has none by itself; chakra_trace_link");
  expect_bad_input(read(R"({"traceEvents": [)"), "t.json");
}

TEST(TraceReader, AnEventWithoutATimeIsNamed) {
  std::vector<nlohmann::json> events = made_iteration();
  events[3].erase("dur");
  expect_bad_input([&] { read_trace(kineto_text(events), "t.json"); },
                   "t.json: traceEvents[3] \"aten::linear\": \"dur\" is missing: expected a time in us");
  events[3]["dur"] = 1e300;
  expect_bad_input([&] { read_trace(kineto_text(events), "t.json"); },
                   "\"dur\": expected a time in us, got 1e+300");
}

}  // namespace
}  // namespace commtune::api
