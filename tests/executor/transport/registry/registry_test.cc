// Of a program that has one more transport than the product: a toy.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "executor/transport/bootstrap/callback_bootstrap.h"
#include "executor/transport/registry/declared.h"
#include "executor/transport/registry/kinds.h"
#include "executor/transport/registry/make_transport.h"
#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/toy/toy.h"

namespace commtune::tests {
namespace {

Deadline soon() { return Clock::now() + std::chrono::seconds(200); }

#ifdef COMMTUNE_WITH_VERBS
constexpr const char* kNames = "local, mpi, tcp, verbs, toy";
constexpr const char* kNamesForProcesses = "mpi, tcp, verbs";
constexpr const char* kNamesWithSubnet = "tcp, verbs";
#else
constexpr const char* kNames = "local, mpi, tcp, toy";
constexpr const char* kNamesForProcesses = "mpi, tcp";
constexpr const char* kNamesWithSubnet = "tcp";
#endif

TEST(Registry, HasWhatItsListNames) {
  EXPECT_EQ(transport_names(), kNames);
  ASSERT_NE(find_transport("toy"), nullptr);
  EXPECT_EQ(find_transport("toy")->name, "toy");
  EXPECT_EQ(find_transport("to"), nullptr);
  EXPECT_EQ(transport_names([](const TransportKind& kind) { return kind.takes_subnet; }), kNamesWithSubnet);
  EXPECT_EQ(transport_names(joins_processes), kNamesForProcesses);
}

/// What each of three ranks is told that asks for a transport which cannot be had.
std::vector<std::string> refusals(const char* name) {
  std::vector<std::string> texts(3);
  on_bootstraps(3, [&](const std::shared_ptr<Bootstrap>& bootstrap) {
    try {
      make_transport(name, bootstrap, {}, soon());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      texts[static_cast<std::size_t>(bootstrap->peers().rank)] = error.what();
    }
  });
  return texts;
}

TEST(Registry, EveryRankIsToldWhoCannotUseATransportAndWhy) {
  toy::rank_without = 1;
  EXPECT_THAT(
      refusals("toy"),
      ::testing::Each(std::string("rank 1 (host local1) cannot use transport toy: no toy on this host")));
  toy::rank_without = -1;
}

TEST(Registry, OpenMpiIsForRanksThatMpirunStarted) {
  EXPECT_THAT(refusals("mpi"), ::testing::Each(std::string(
                                   "rank 0 (host local0) cannot use transport mpi: these ranks were not "
                                   "started by mpirun")));
}

TEST(Registry, SaysWhichTransportsThereAreWhereAnotherIsAskedFor) {
  EXPECT_THAT(
      refusals("smoke"),
      ::testing::Each(std::string("rank 0 (host local0) cannot use transport smoke: this commtune does not "
                                  "have it, but ") +
                      kNamesForProcesses));
}

TEST(Registry, ThreadsOfOneProcessAreForRanksThatMetInItsMemory) {
  const auto alone = [](std::span<const std::byte> own) {
    return std::vector<std::byte>(own.begin(), own.end());
  };
  const std::shared_ptr<Bootstrap> bootstrap = make_callback_bootstrap(0, 1, alone);
  try {
    make_transport("local", bootstrap, {}, soon());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(std::string(error.what()),
              describe(bootstrap->peers(), 0) +
                  " cannot use transport local: its ranks are threads of one process that have met in its "
                  "memory, and these have not: use tcp");
  }
}

TEST(Registry, SaysWhatProcessesCanUseInsteadOfOneThatIsForThreads) {
  EXPECT_EQ(not_between_processes("tcp"), std::nullopt);
  EXPECT_EQ(not_between_processes("local"),
            std::string("transport local: its ranks are threads of one process, and these are processes: use "
                        "one of ") +
                kNamesForProcesses);
  EXPECT_EQ(not_between_processes("smoke"), no_such_transport("smoke"));
}

#ifdef COMMTUNE_WITH_VERBS
TEST(Registry, VerbsSayInOneLineWhyTheyCannotBeUsed) {
  if (!verbs::unusable(*make_local_bootstraps(1).front())) GTEST_SKIP() << "this machine has an RDMA card";
  EXPECT_THAT(refusals("verbs"), ::testing::Each(::testing::MatchesRegex(
                                     "rank 0 \\(host local0\\) cannot use transport verbs: [^\n]+")));
}
#endif

}  // namespace
}  // namespace commtune::tests
