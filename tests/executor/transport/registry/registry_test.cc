// Of a program that has one more transport than the product: a toy.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "executor/transport/registry/declared.h"
#include "executor/transport/registry/kinds.h"
#include "executor/transport/registry/make_transport.h"
#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"
#include "tests/executor/transport/toy/toy.h"

namespace commtune::testing {
namespace {

Deadline soon() { return Clock::now() + std::chrono::seconds(200); }

#ifdef COMMTUNE_WITH_VERBS
constexpr const char* kNames = "mpi, tcp, verbs, toy";
constexpr const char* kNamesWithSubnet = "tcp, verbs";
#else
constexpr const char* kNames = "mpi, tcp, toy";
constexpr const char* kNamesWithSubnet = "tcp";
#endif

TEST(Registry, HasWhatItsListNames) {
  EXPECT_EQ(transport_names(), kNames);
  ASSERT_NE(find_transport("toy"), nullptr);
  EXPECT_EQ(find_transport("toy")->name, "toy");
  EXPECT_EQ(find_transport("to"), nullptr);
  EXPECT_EQ(transport_names([](const TransportKind& kind) { return kind.takes_subnet; }), kNamesWithSubnet);
}

class RegisteredTransportTest : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(RegisteredTransportTest, ConformsUnderItsName) {
  for (const char* name : {"tcp", "toy"}) {
    on_bootstraps(
        3,
        [&](const std::shared_ptr<Bootstrap>& bootstrap) {
          const auto transport = make_transport(name, bootstrap, {}, soon());
          transport->limit_messages({.longest = 4_MiB, .early = 16_MiB});
          GetParam().body(*transport);
          synchronize(*transport);
        },
        3);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, RegisteredTransportTest, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

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
                      kNames));
}

#ifdef COMMTUNE_WITH_VERBS
TEST(Registry, VerbsSayInOneLineWhyTheyCannotBeUsed) {
  if (!verbs::unusable(*make_local_bootstraps(1).front())) GTEST_SKIP() << "this machine has an RDMA card";
  EXPECT_THAT(refusals("verbs"), ::testing::Each(::testing::MatchesRegex(
                                     "rank 0 \\(host local0\\) cannot use transport verbs: [^\n]+")));
}
#endif

}  // namespace
}  // namespace commtune::testing
