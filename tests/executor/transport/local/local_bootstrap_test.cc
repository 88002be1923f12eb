#include "executor/transport/local/local_bootstrap.h"

#include <gmock/gmock.h>

#include <array>
#include <string>

#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"

namespace commtune::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::array<std::byte, 8> bytes_of_length_eight() { return {}; }

TEST(LocalBootstrap, GathersRecordsInTheOrderOfRanks) {
  on_bootstraps(4, [](const std::shared_ptr<Bootstrap>& bootstrap) {
    // Many rounds: no rank gets what another one brings to the next.
    for (int round = 0; round < 100; ++round) {
      EXPECT_THAT(all_gather(*bootstrap, 1000 * round + bootstrap->peers().rank, soon()),
                  ElementsAre(1000 * round, 1000 * round + 1, 1000 * round + 2, 1000 * round + 3));
    }
  });
}

TEST(LocalBootstrap, KnowsWhoSharesAHost) {
  const auto places = make_local_bootstraps(3, 2);
  EXPECT_EQ(places[2]->peers().rank, 2);
  EXPECT_THAT(places[2]->peers().node, ElementsAre(0, 0, 1));
  EXPECT_THAT(places[2]->peers().hosts, ElementsAre("local0", "local0", "local1"));
}

TEST(LocalBootstrap, HandsWhatRankZeroBringsToAllRanks) {
  on_bootstraps(3, [](const std::shared_ptr<Bootstrap>& bootstrap) {
    auto& place = dynamic_cast<LocalBootstrap&>(*bootstrap);
    for (int round = 0; round < 100; ++round) {
      const auto shared = place.share(std::make_shared<int>(10 * round + place.peers().rank), soon());
      EXPECT_EQ(*std::static_pointer_cast<int>(shared), 10 * round);
    }
  });
}

TEST(LocalBootstrap, EveryRankIsToldWhoseRecordHasAnotherLength) {
  on_bootstraps(3, [](const std::shared_ptr<Bootstrap>& bootstrap) {
    const auto bytes = bytes_of_length_eight();
    try {
      bootstrap->all_gather(std::span(bytes).first(bootstrap->peers().rank == 1 ? 4 : 8), soon());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConflict);
      EXPECT_THAT(error.what(),
                  HasSubstr("rank 1 (host local1) told the others 4 B, and rank 0 (host local0) 8 B"));
    }
  });
}

TEST(LocalBootstrap, ARankThatDoesNotComeIsNamed) {
  const auto places = make_local_bootstraps(2);
  try {
    places[0]->all_gather({}, Clock::now());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_STREQ(error.what(), "waiting for rank 1 (host local1): timed out");
  }
}

TEST(LocalBootstrap, TellsTheOthersWhenARankGivesUp) {
  on_bootstraps(3, [](const std::shared_ptr<Bootstrap>& bootstrap) {
    if (bootstrap->peers().rank == 1) return bootstrap->abort("no memory");
    try {
      bootstrap->all_gather({}, Deadline::max());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
      EXPECT_STREQ(error.what(), "rank 1 (host local1) ended the run: no memory");
    }
  });
}

}  // namespace
}  // namespace commtune::tests
