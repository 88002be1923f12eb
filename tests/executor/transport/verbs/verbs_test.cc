// The verbs transport over the RDMA cards of this machine, each taken for a host's: tests/rdma/run starts
// this program in a virtual machine with soft-RoCE. Ranks are threads, or processes where one of them is
// killed.

#include "executor/transport/verbs/verbs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <vector>

#include "executor/replay/run.h"
#include "executor/transport/registry/make_transport.h"
#include "perfmodel/base/error.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"
#include "tests/executor/transport/verbs/card_ranks.h"
#include "tests/executor/transport/verbs/forked_ranks.h"

namespace commtune::testing {
namespace {

using ::testing::HasSubstr;

int rank_count() { return static_cast<int>(std::max<std::size_t>(2, cards().size())); }

class VerbsTransportTest : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(VerbsTransportTest, Conforms) { on_verbs_ranks(rank_count(), GetParam().body); }

INSTANTIATE_TEST_SUITE_P(Verbs, VerbsTransportTest, ::testing::ValuesIn(conformance_cases()),
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

TEST(VerbsTransport, SendsFromMemoryThatIsRegisteredOnce) {
  on_verbs_ranks(2, [](VerbsTransport& transport) {
    std::vector<std::byte> data(1 << 20, static_cast<std::byte>(transport.peers().rank));
    transport.register_memory(data);
    for (std::uint32_t i = 0; i < 4; ++i) {
      const auto part = std::span(data).subspan(i << 18, 1 << 18);
      const Tag tag = make_tag(TagSpace::kReduce, i);
      if (transport.peers().rank == 0) {
        transport.send(1, tag, part);
      } else {
        transport.receive(0, tag, part);
      }
    }
    wait_for(transport, 4);
    transport.unregister_memory(data);
    EXPECT_EQ(data, std::vector<std::byte>(1 << 20));
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

TEST(VerbsTransport, NamesTheRankThatHasLeft) {
  on_bootstraps(2, [](const std::shared_ptr<Bootstrap>& bootstrap) {
    auto transport = connect(bootstrap);
    if (bootstrap->peers().rank == 1) return;
    std::array<std::byte, 8> data{};
    try {
      transport->receive(1, make_tag(TagSpace::kReduce, 0), data);
      wait_for(*transport, 1);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
      EXPECT_THAT(error.what(), HasSubstr("rank 1 (host local1)"));
    }
  });
}

/// The last rank is killed while rank 0 and it send each other long messages without end, or while it is
/// silent; all others wait for something from it.
std::vector<RankEnd> kill_the_last_of(int ranks, bool in_a_message) {
  return on_forked_ranks(ranks, [&](std::shared_ptr<Bootstrap> bootstrap) -> std::string {
    const int rank = bootstrap->peers().rank;
    const auto transport = connect(bootstrap);
    bootstrap.reset();
    const int last = ranks - 1;
    const bool exchanges = in_a_message && (rank == 0 || rank == last);
    const int peer = rank == last ? 0 : last;
    std::vector<std::byte> out(4 << 20), in(4 << 20);
    const auto killed_at = Clock::now() + std::chrono::milliseconds(200);
    for (std::uint32_t i = 0;; ++i) {
      const Tag tag = make_tag(TagSpace::kReduce, i % 1000);
      if (exchanges || rank != last) transport->receive(peer, tag, in);
      if (exchanges) transport->send(peer, tag, out);
      if (rank == last && !exchanges) transport->wait(killed_at);
      if (rank == last && Clock::now() >= killed_at) std::raise(SIGKILL);
      if (exchanges || rank != last) wait_for(*transport, exchanges ? 2 : 1);
    }
  });
}

void expect_all_named_the_last(const std::vector<RankEnd>& ends) {
  const std::size_t last = ends.size() - 1;
  EXPECT_TRUE(WIFSIGNALED(ends[last].status));
  for (std::size_t rank = 0; rank < last; ++rank) {
    EXPECT_TRUE(WIFEXITED(ends[rank].status) && WEXITSTATUS(ends[rank].status) == 1) << "rank " << rank;
    // What its card does first decides how: it answers no more, or its memory is gone already.
    EXPECT_THAT(ends[rank].said, HasSubstr(fmt::format("rank {} (host h{})", last, last)));
    fmt::print("rank {}: {}\n", rank, ends[rank].said);
  }
}

TEST(VerbsTransport, ARankKilledInTheMiddleOfAMessageIsNamedWithinTheLimit) {
  const auto start = Clock::now();
  expect_all_named_the_last(kill_the_last_of(rank_count(), true));
  // 0.2 s until then, a look after a second or two, and 7.5 s until the card gives up.
  EXPECT_LT(Seconds(Clock::now() - start).count(), 30);
}

TEST(VerbsTransport, ARankKilledWhileOthersWaitForItIsNamedWithinTheLimit) {
  const auto start = Clock::now();
  expect_all_named_the_last(kill_the_last_of(rank_count(), false));
  EXPECT_LT(Seconds(Clock::now() - start).count(), 30);
}

}  // namespace
}  // namespace commtune::testing

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): what is thrown ends the test
  ::testing::InitGoogleTest(&argc, argv);
  try {
    if (commtune::testing::cards().empty()) throw std::runtime_error("no RDMA card of this machine is up");
  } catch (const std::exception& error) {
    fmt::print("verbs_transport_test: skipped: {}\n", error.what());
    return 77;
  }
  return RUN_ALL_TESTS();
}
