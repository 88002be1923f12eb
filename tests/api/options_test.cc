#include "api/options.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "api/question/question_fields.h"
#include "api/rest/openapi.h"
#include "api/wire/order.h"
#include "tests/perfmodel/throws.h"

namespace commtune::api {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// --- requests that commands carry out -------------------------------------------------------------------

std::string refusal(const json& body, std::span<const Knob> knobs) {
  return bad_input([&] { check_request(JsonPlace(body), knobs); });
}

TEST(Knobs, RefuseWhatARequestMayNotSay) {
  EXPECT_THAT(refusal({{"colour", 1}}, knob::kProbeRequest),
              testing::StartsWith("colour: unknown key; known here: budget_seconds, first_bytes, last_bytes, "
                                  "traffic_bytes, servers, for, transport, fresh, shared_hosts"));
  EXPECT_EQ(refusal({{"budget_seconds", 0}}, knob::kProbeRequest),
            "budget_seconds: expected a number from 0.001 to 86400.0, got 0");
  EXPECT_EQ(refusal({{"first_bytes", 0}}, knob::kProbeRequest),
            "first_bytes: expected a positive integer, got 0");
  EXPECT_EQ(refusal({{"servers", {1, 65'537}}}, knob::kProbeRequest),
            "servers[1]: expected an integer of at most 65536, got 65537");
  EXPECT_EQ(refusal({{"fresh", 1}}, knob::kProbeRequest), "fresh: expected true or false, got 1");
  EXPECT_EQ(refusal({{"methods", json::array({std::string(65, 'm')})}}, knob::kRunRequest),
            "methods[0]: expected at most 64 letters, got \"" + std::string(60, 'm') + "...\"");
  EXPECT_EQ(refusal({{"methods", json::array()}}, knob::kRunRequest),
            "methods: expected at least 1 elements, got 0");
  const json absent{{"fresh", nullptr}};
  check_request(JsonPlace(absent), knob::kProbeRequest);
}

TEST(Knobs, BecomeTheFlagsOfACommand) {
  std::vector<std::string> probe;
  add_flags({{"budget_seconds", 1.5},
             {"first_bytes", 8},
             {"servers", {1, 4}},
             {"for", {"resnet50", "0123456789abcdef"}},
             {"fresh", true},
             {"shared_hosts", false}},
            knob::kProbeRequest, probe);
  EXPECT_THAT(probe, ElementsAre("--budget=1.5s", "--first=8", "--servers=1,4", "--for=resnet50",
                                 "--for=0123456789abcdef", "--fresh"));
  std::vector<std::string> run;
  add_flags({{"plan", 7},
             {"methods", {"wfbp-a2a", "joint"}},
             {"model", "resnet50"},
             {"timeout_seconds", 2},
             {"warmup", 0}},
            knob::kRunRequest, run);
  EXPECT_THAT(run, ElementsAre("--method=wfbp-a2a", "--method=joint", "--model=resnet50", "--warmup=0",
                               "--timeout=2s"));
}

// --- openapi.yaml ---------------------------------------------------------------------------------------

/// The properties of a schema, each with its line.
std::map<std::string, std::string> properties_of(const std::string& schema, std::size_t indent = 8) {
  const std::string text(rest::openapi_text());
  const std::string head = "\n" + std::string(indent - 4, ' ') + schema + ":\n";
  std::istringstream lines(text.substr(text.find(head) + head.size()));
  std::map<std::string, std::string> found;
  bool in_properties = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t depth = line.find_first_not_of(' ');
    if (depth <= indent - 4) break;
    if (depth == indent - 2) in_properties = line.substr(depth) == "properties:";
    if (in_properties && depth == indent) {
      const std::size_t colon = line.find(':');
      found[line.substr(depth, colon - depth)] = line.substr(std::min(line.size(), colon + 2));
    }
  }
  return found;
}

std::string number_text(double value) {
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

std::string capitalised(std::string_view text) {
  std::string out(text);
  out.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(out.front())));
  return out;
}

/// The line says the knob's limits and, where a struct has a value, its default.
void expect_described(const std::string& line, const Knob& knob, const json& defaults) {
  const bool scale = line.find("schemas/Scale") != std::string::npos;
  if (knob.most > 0 && knob.takes != Takes::kNames && knob.takes != Takes::kText && !scale) {
    EXPECT_THAT(line, HasSubstr(fmt::format("minimum: {}, maximum: {}", number_text(knob.least),
                                            number_text(knob.most))))
        << knob.name;
  }
  const auto usual = defaults.find(knob.name);
  if (usual == defaults.end() || !usual->is_number() || *usual == 0 || scale) return;
  // "default:" would make clients that are made from the document send it always.
  const std::string value = number_text(usual->get<double>());
  EXPECT_THAT(line, testing::AnyOf(HasSubstr("default: " + value), HasSubstr(value + " by default")))
      << knob.name;
}

void expect_all_described(const std::string& schema, std::span<const Knob> knobs, const json& defaults) {
  const auto properties = properties_of(schema);
  std::set<std::string> described, known;
  for (const auto& [name, line] : properties) described.insert(name);
  for (const Knob& knob : knobs) {
    known.insert(std::string(knob.name));
    if (properties.contains(std::string(knob.name)))
      expect_described(properties.at(std::string(knob.name)), knob, defaults);
  }
  EXPECT_EQ(described, known) << schema;
}

TEST(OpenApi, DescribesWhatARequestForAProbeMaySay) {
  json defaults = settings_of(probes::ProbeOptions{});
  expect_all_described("ProbeRequest", knob::kProbeRequest, defaults);
  const auto properties = properties_of("ProbeRequest");
  for (const Knob& knob : knob::kProbeRequest)
    EXPECT_THAT(properties.at(std::string(knob.name)), HasSubstr("description: \"" + capitalised(knob.help)));
}

TEST(OpenApi, DescribesWhatARequestForARunMaySay) {
  expect_all_described("RunRequest", knob::kRunRequest, settings_of(RunOptions{}));
}

TEST(OpenApi, DescribesWhereAJobRunsAndWhatIsAssumed) {
  expect_all_described("Placement", knob::kPlacement, fields::write_fields(Allocation{}));
  const Knob overrides[] = {knob::kBandwidthScale, knob::kLatencyScale, knob::kDeviceSpeedScale,
                            knob::kGradientScale, knob::kBatch};
  expect_all_described("Overrides", overrides, {});
  const std::string text(rest::openapi_text());
  EXPECT_THAT(text, HasSubstr(fmt::format(
                        "\n    Scale: {{type: number, minimum: {}, maximum: {}, default: 1}}",
                        number_text(knob::kLatencyScale.least), number_text(knob::kLatencyScale.most))));
}

TEST(OpenApi, DescribesHowAQuestionIsAnswered) {
  const Question usual;
  const json defaults{{"draws", usual.draws}, {"seed", usual.seed}};
  const auto question = properties_of("PlanRequest");
  for (const Knob& knob : {knob::kWorkers, knob::kNodeCount, knob::kDevicesPerNode, knob::kServers,
                           knob::kDedicatedServers, knob::kDraws, knob::kSeed})
    expect_described(question.at(std::string(knob.name)), knob, defaults);
  EXPECT_THAT(std::string(rest::openapi_text()), HasSubstr(capitalised(knob::kExplain.help).substr(0, 60)));
  const auto recommended = properties_of("recommend_workers", 12);
  expect_described(recommended.at("most"), knob::kRecommendWorkers, {});
  expect_described(recommended.at("least_efficiency"), knob::kLeastEfficiency,
                   {{"least_efficiency", usual.least_efficiency}});
  const tuner::VerifyLimits limits;
  const std::string text(rest::openapi_text());
  for (const auto& [knob, value] :
       {std::pair{knob::kVerify, double(limits.plans)}, {knob::kVerifyBudget, limits.budget.count()}})
    EXPECT_THAT(text,
                HasSubstr(fmt::format("{}: {{type: {}, minimum: {}, maximum: {}, default: {},", knob.name,
                                      knob.takes == Takes::kCount ? "integer" : "number",
                                      number_text(knob.least), number_text(knob.most), number_text(value))));
}

// What a question's query has in common with its body has the same limits.
TEST(OpenApi, LimitsParametersOfAQueryAsTheBody) {
  const std::string text(rest::openapi_text());
  for (const Knob& knob : {knob::kBatch, knob::kDraws, knob::kSeed, knob::kDedicatedServers}) {
    const std::string head = fmt::format("{{name: {}, in: query", knob.name);
    std::size_t at = text.find(head);
    EXPECT_NE(at, std::string::npos) << knob.name;
    for (; at != std::string::npos; at = text.find(head, at + 1))
      expect_described(text.substr(at, text.find('\n', at) - at), knob, {});
  }
}

// --- help -----------------------------------------------------------------------------------------------

TEST(Knobs, AreHelpedByAPhraseWithoutAFullStop) {
  for (const std::span<const Knob> knobs :
       {std::span<const Knob>(knob::kProbeRequest), std::span<const Knob>(knob::kRunRequest),
        std::span<const Knob>(knob::kVerifyRequest)}) {
    for (const Knob& knob : knobs) {
      EXPECT_TRUE(std::islower(static_cast<unsigned char>(knob.help.front()))) << knob.flag;
      EXPECT_NE(knob.help.back(), '.') << knob.flag;
      EXPECT_EQ(knob.help.find("default"), std::string_view::npos) << knob.flag << " says it in `usual`";
    }
  }
}

}  // namespace
}  // namespace commtune::api
