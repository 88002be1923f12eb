// Of a program that has one more library than the product: a toy.

#include "executor/collectives/registry/libraries.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "executor/replay/run.h"
#include "perfmodel/base/error.h"
#include "tests/executor/collectives/library_cases.h"
#include "tests/executor/collectives/toy/toy.h"
#include "tests/executor/random_plan.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

TEST(Libraries, AreWhatTheirListNames) { EXPECT_EQ(library_names(), "openmpi, nccl, toy"); }

TEST(Libraries, SayWhyTheyCannotBeUsedBesideATransport) {
  on_ranks(1, [](Transport& transport) {
    Communicator communicator(transport);
    EXPECT_FALSE(why_no_library("toy", communicator));
    EXPECT_EQ(why_no_library("", communicator),
              "library openmpi: it works beside transport mpi alone, and this one is local");
    EXPECT_EQ(why_no_library("gloo", communicator),
              "library gloo: this commtune does not have it, but openmpi, nccl, toy");
    EXPECT_EQ(why_no_library("toy:Ring+LL", communicator),
              "library toy: it has no options, and \"Ring+LL\" was given");
    EXPECT_THROW(make_library("gloo", {communicator, {}, {}}, 1), Error);
  });
}

class ToyLibraryTest : public ::testing::TestWithParam<LibraryCase> {};

TEST_P(ToyLibraryTest, Conforms) {
  on_ranks(3, [](Transport& transport) {
    Communicator communicator(transport);
    const auto library = make_library("toy", {communicator, {}, {}}, 3);
    GetParam().body(communicator, *library);
  });
}

INSTANTIATE_TEST_SUITE_P(Toy, ToyLibraryTest, ::testing::ValuesIn(library_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

Plan plan_by(const std::string& library, const Profile& profile, int workers) {
  Plan plan = wait_free_plan(profile, workers, AllReduce{Collective::kLibrary});
  plan.library = library;
  return plan;
}

RunOptions short_run() {
  RunOptions options;
  options.iterations = 2;
  options.warmup = 1;
  options.timeout = Seconds{100};
  return options;
}

/// The run compares every element of every tensor with the serial reference, and throws.
TEST(LibraryRoad, APlanNamesTheLibraryThatSumsItsMessages) {
  const Profile profile = profile_of({1000, 20, 3000});
  const int before = toy::collectives;
  on_ranks(3, [&](Transport& transport) {
    run_plan(transport, plan_by("toy", profile, 3), profile, short_run());
  });
  EXPECT_EQ(toy::collectives - before, 3 * 4);  // messages, iterations
}

TEST(LibraryRoad, SumsInTheTypeThatThePlanCastsTo) {
  const Profile profile = profile_of({1000, 20, 3000});
  for (const WireFormat wire : kCasts) {
    Plan plan = plan_by("toy", profile, 3);
    plan.wire = wire;
    on_ranks(3, [&](Transport& transport) {
      const RunReport report = run_plan(transport, plan, profile, short_run());
      EXPECT_EQ(report.wire, to_string(wire));
      EXPECT_EQ(overflows(report), 0U);
    });
  }
}

/// What each of three ranks is told whose plan cannot have its library.
std::vector<std::string> refusals(const std::string& library) {
  const Profile profile = profile_of({1000});
  std::vector<std::string> texts(3);
  on_ranks(3, [&](Transport& transport) {
    try {
      run_plan(transport, plan_by(library, profile, 3), profile, short_run());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      texts[static_cast<std::size_t>(transport.peers().rank)] = error.what();
    }
  });
  return texts;
}

TEST(LibraryRoad, EveryRankIsToldWhoCannotUseTheLibraryAndWhy) {
  toy::rank_without = 1;
  EXPECT_THAT(refusals("toy"), ::testing::Each(std::string(
                                   "algorithm = library: rank 1 (host local1) cannot use library toy: no "
                                   "toy on this host")));
  toy::rank_without = -1;
  EXPECT_THAT(refusals(""), ::testing::Each(std::string(
                                "algorithm = library: rank 0 (host local0) cannot use library openmpi: it "
                                "works beside transport mpi alone, and this one is local")));
}

}  // namespace
}  // namespace commtune::tests
