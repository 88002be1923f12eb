// The verbs transport over the RDMA cards of this machine, each taken for a host's: tests/rdma/run starts
// this program in a virtual machine with soft-RoCE. Ranks are threads, or processes where one of them is
// killed.

#include "executor/transport/verbs/verbs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "executor/replay/run.h"
#include "executor/transport/registry/make_transport.h"
#include "perfmodel/base/error.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"
#include "tests/executor/transport/fault_cases.h"
#include "tests/executor/transport/verbs/card_ranks.h"

namespace commtune::tests {
namespace {

using ::testing::HasSubstr;

int rank_count() { return static_cast<int>(std::max<std::size_t>(2, cards().size())); }

class VerbsTransportTest : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(VerbsTransportTest, Conforms) { on_verbs_ranks(rank_count(), GetParam().body); }

INSTANTIATE_TEST_SUITE_P(Verbs, VerbsTransportTest, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

class VerbsFaultTest : public ::testing::TestWithParam<FaultCase> {};

TEST_P(VerbsFaultTest, IsTold) {
  const auto connect_one = [](const std::shared_ptr<Bootstrap>& bootstrap) { return connect(bootstrap); };
  GetParam().body({.connect = connect_one, .ranks = rank_count()});
}

INSTANTIATE_TEST_SUITE_P(Verbs, VerbsFaultTest, ::testing::ValuesIn(fault_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

/// Every element is compared with a serial reference.
void run_exactly(const Plan& plan, const Profile& profile, int connections = 1) {
  on_verbs_ranks(
      ranks_of(plan),
      [&](VerbsTransport& transport) {
        RunOptions options;
        options.iterations = 2;
        options.warmup = 1;
        options.timeout = Seconds{100};
        run_plan(transport, plan, profile, options);
      },
      connections);
}

TEST(VerbsTransport, RunsAnyPlanWithTheExactResult) {
  const int workers = rank_count();
  for (const Road& road : roads_for(workers)) {
    const auto job = random_job(17 + static_cast<std::uint64_t>(workers), workers, road);
    if (ranks_of(job.plan) == workers) run_exactly(job.plan, job.profile);
  }
}

TEST(VerbsTransport, RunsPlansOverSeveralConnectionsOfEachPair) {
  // Messages of 3 MB are in parts on all of them, those of 36 KB on one.
  const int workers = rank_count();
  const Profile profile = profile_of({750'000, 9'000, 500, 20'000});
  for (const int connections : {2, 4}) {
    for (const Road& road :
         {Road{AllReduce{}}, Road{AllReduce{Collective::kOneShot}}, Road{ParameterServer{2}}})
      run_exactly(wait_free_plan(profile, workers, road), profile, connections);
  }
}

TEST(VerbsTransport, RefusesRanksWithDifferentNumbersOfConnections) {
  on_bootstraps(2, [](const std::shared_ptr<Bootstrap>& bootstrap) {
    try {
      const auto transport = connect(bootstrap, 1 + bootstrap->peers().rank);
      FAIL() << "connected";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.what(), HasSubstr("it has 2 connections a pair, this rank 1"));
    }
  });
}

TEST(VerbsTransport, CopiesNothingOfPostedMessagesAboveTheEagerLimit) {
  on_verbs_ranks(2, [](VerbsTransport& transport) {
    constexpr std::uint32_t kMessages = 8;
    constexpr std::size_t kSize = 256 << 10;
    std::vector<std::byte> data(kMessages * kSize);
    transport.register_memory(data);
    const TransferUsage before = transport.usage();
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      const auto part = std::span(data).subspan(i * kSize, kSize);
      const Tag tag = make_tag(TagSpace::kReduce, i);
      transport.peers().rank == 0 ? transport.send(1, tag, part) : transport.receive(0, tag, part);
    }
    wait_for(transport, kMessages);
    const std::uint64_t copied = transport.usage().copied_bytes - before.copied_bytes;
    EXPECT_LE(copied, 1U) << "the byte of the barrier behind this test may have come early";
    EXPECT_EQ(transport.usage().passing_regions, before.passing_regions);
    transport.unregister_memory(data);
    if (transport.peers().rank == 1)
      fmt::print("COUNT copied_bytes_of_{}_MiB={}\n", data.size() >> 20, copied);
  });
}

/// By rank: registrations that are no plan's, after so many iterations of three messages above the eager
/// limit.
std::vector<std::uint64_t> passing_regions(const Road& road, int iterations) {
  const int workers = rank_count();
  const Profile profile = profile_of({40'000, 9'000, 60'000});
  const Plan plan = wait_free_plan(profile, workers, road);
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(workers));
  on_verbs_ranks(workers, [&](VerbsTransport& transport) {
    RunOptions options;
    options.iterations = iterations;
    options.warmup = 1;
    options.timeout = Seconds{100};
    run_plan(transport, plan, profile, options);
    counts[static_cast<std::size_t>(transport.peers().rank)] = transport.usage().passing_regions;
  });
  return counts;
}

TEST(VerbsTransport, RegistersNothingWhileIterationsRun) {
  const std::vector<Road> roads{AllReduce{}, AllReduce{Collective::kDoubleBinaryTree},
                                AllReduce{Collective::kOneShot}, ParameterServer{2}};
  for (const Road& road : roads) {
    EXPECT_EQ(passing_regions(road, 1), passing_regions(road, 9)) << describe(road);
  }
  fmt::print("COUNT registrations_per_iteration={}\n", HasFailure() ? 1 : 0);
}

TEST(VerbsTransport, EveryRankIsToldWhoHasNoCard) {
  on_bootstraps(2, [](const std::shared_ptr<Bootstrap>& bootstrap) {
    VerbsOptions options = options_of(*bootstrap);
    if (bootstrap->peers().rank == 1) options.gid.device = "none7";
    try {
      const auto transport = make_verbs_transport(bootstrap, options);
      FAIL() << "connected";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.what(), HasSubstr("rank 1 (host local1)"));
      EXPECT_THAT(error.what(), HasSubstr("device none7"));
    }
  });
}

TEST(VerbsTransport, IsMadeByItsName) {
  on_bootstraps(
      2,
      [](const std::shared_ptr<Bootstrap>& bootstrap) {
        const auto transport =
            make_transport("verbs", bootstrap, {}, Clock::now() + std::chrono::seconds(100));
        EXPECT_EQ(transport->name(), "verbs");
        synchronize(*transport);
      },
      2);
}

}  // namespace
}  // namespace commtune::tests

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): what is thrown ends the test
  ::testing::InitGoogleTest(&argc, argv);
  try {
    if (commtune::tests::cards().empty()) throw std::runtime_error("no RDMA card of this machine is up");
  } catch (const std::exception& error) {
    fmt::print("verbs_transport_test: skipped: {}\n", error.what());
    return 77;
  }
  return RUN_ALL_TESTS();
}
