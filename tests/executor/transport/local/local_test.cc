#include "executor/transport/local/local.h"

#include <gtest/gtest.h>

#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"

namespace commtune::testing {
namespace {

class LocalTransportTest : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(LocalTransportTest, Conforms) {
  for (const int ranks : {2, 3, 4}) on_ranks(ranks, GetParam().body);
}

INSTANTIATE_TEST_SUITE_P(Local, LocalTransportTest, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(LocalTransport, RefusesAMessageLongerThanItsReceive) {
  auto ends = make_local_transports(2);
  std::array<std::byte, 8> data{};
  ends[0]->send(1, make_tag(TagSpace::kReduce, 0), data);
  ends[1]->receive(0, make_tag(TagSpace::kReduce, 0), std::span(data).first(4));
  try {
    ends[1]->wait(Clock::now());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConflict);
    EXPECT_STREQ(error.what(),
                 "rank 0 (host local0) sent 8 B where at most 4 B were expected (channel 1, number 0)");
  }
}

TEST(LocalTransport, TellsTheOthersWhenARankGivesUp) {
  auto ends = make_local_transports(2, {.ranks_per_host = 1});
  ends[1]->abort("no memory");
  try {
    ends[0]->wait(Clock::now());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_STREQ(error.what(), "rank 1 (host local1) ended the run: no memory");
  }
}

}  // namespace
}  // namespace commtune::testing
