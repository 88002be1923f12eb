#include "probes/sample.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "perfmodel/base/error.h"

namespace commtune::probes {
namespace {

ProbeSample operation_sample() {
  ProbeSample sample;
  sample.quantity.subject = Subject::kOperation;
  sample.quantity.road = ParameterServer{2, Placement::kColocated, Assignment::kHashed};
  sample.quantity.operation = Operation::kPushPull;
  sample.quantity.workers = 4;
  sample.quantity.in_flight = 8;
  sample.sample = {Bytes{4096}, Seconds{1.25e-3}, Seconds{1e-5}, 3};
  sample.raw_seconds = {1.24e-3, 1.25e-3, 1.26e-3};
  return sample;
}

TEST(ProbeSample, SurvivesJson) {
  ProbeSample message;
  message.quantity.source = 3;
  message.quantity.destination = 0;
  message.sample = {Bytes{4}, Seconds{3e-4}, Seconds{0}, 1};
  ProbeSample sum;
  sum.quantity.subject = Subject::kSum;
  sum.quantity.source = 1;
  ProbeSample jitter;
  jitter.quantity.subject = Subject::kJitter;
  ProbeSample head_of_line = operation_sample();
  head_of_line.quantity.subject = Subject::kHeadOfLine;
  ProbeSample plan;
  plan.quantity.subject = Subject::kPlan;
  plan.quantity.road = AllReduce{Collective::kHalvingDoubling};
  plan.quantity.workers = 4;
  plan.sample = {100_MiB, Seconds{0.35}, Seconds{0.01}, 7};
  plan.costs = {"0123456789abcdef", Seconds{0.253}, {1.31, 1.31, {0.02, 0.02}}, {}};
  plan.costs.streamed = plan.costs.alone;
  ProbeSample apart = plan, streams = plan;
  apart.costs.alone = apart.costs.streamed = {2.2, 1.31, {0.3, 0.1, true}};
  streams.costs.streamed = {2.2, 1.31, {0.3, 0.1, true}};
  ProbeSample cast = sum;
  cast.quantity.subject = Subject::kCast;
  cast.quantity.wire = WireFormat::kFloat16;
  ProbeSample nccl = operation_sample();
  nccl.quantity.road = AllReduce{Collective::kLibrary};
  nccl.quantity.operation = Operation::kAllReduce;
  nccl.quantity.nccl = {NcclAlgorithm::kRing, NcclProtocol::kLl, 4};
  ProbeSample traffic = operation_sample();
  traffic.quantity.subject = Subject::kTraffic;
  ProbeSample beside = traffic;
  beside.quantity.computing = true;
  ProbeSample upload = sum;
  upload.quantity.subject = Subject::kUpload;
  for (const ProbeSample& sample : {operation_sample(), message, sum, cast, jitter, head_of_line, plan, apart,
                                    streams, nccl, traffic, beside, upload}) {
    EXPECT_EQ(probe_sample_from_json(nlohmann::json::parse(to_json(sample).dump())), sample);
  }
}

TEST(ProbeSample, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const char* key, const nlohmann::json& value) -> std::string {
    nlohmann::json json = to_json(operation_sample());
    json[key] = value;
    try {
      probe_sample_from_json(json);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("subject", "dance"), testing::HasSubstr("subject: expected one of"));
  EXPECT_THAT(refusal("size_bytes", -4), testing::HasSubstr("size_bytes"));
  EXPECT_THAT(refusal("repetitions", 0), testing::HasSubstr("repetitions"));
  EXPECT_THAT(refusal("operation", "all-to-none"), testing::HasSubstr("\"push-pull\""));
  EXPECT_THAT(refusal("colour", "red"), testing::HasSubstr("colour"));
  EXPECT_THAT(refusal("raw_seconds", nlohmann::json{"fast"}), testing::HasSubstr("raw_seconds[0]"));
}

TEST(DescribeQuantity, SaysWhatWasMeasured) {
  EXPECT_EQ(describe(operation_sample().quantity),
            "push-pull, 2 colocated servers, hashed, 4 workers, 8 in flight");
  Quantity traffic = operation_sample().quantity;
  traffic.subject = Subject::kTraffic;
  traffic.computing = true;
  EXPECT_EQ(describe(traffic),
            "stream of 2 colocated servers, hashed, 4 workers, 8 in flight, beside compute steps");
}

}  // namespace
}  // namespace commtune::probes
