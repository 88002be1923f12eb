#include "executor/roads/parameter_server/parameter_server.h"

#include <gtest/gtest.h>

#include <array>

#include "executor/roads/host_layout.h"
#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"

namespace commtune {
namespace {

TEST(ParameterServer, LivesBesideTheFirstWorkerThatThePlanNamesAndThoseAfterIt) {
  const ParameterServer road{3, Placement::kColocated, Assignment::kEven, LocalSum::kNone, 2};
  EXPECT_EQ(server_rank(road, 4, 0), 2);
  EXPECT_EQ(server_rank(road, 4, 1), 3);
  EXPECT_EQ(server_rank(road, 4, 2), 0);
  EXPECT_EQ(server_of(road, 4, 0), 2);
  EXPECT_EQ(server_of(road, 4, 1), -1);
  EXPECT_EQ(server_of(road, 4, 2), 0);
}

TEST(ParameterServer, IsNoRankBeyondTheJob) {
  const ParameterServer colocated{2};
  EXPECT_EQ(server_of(colocated, 2, 1), 1);
  EXPECT_EQ(server_of(colocated, 2, 2), -1);
  const ParameterServer dedicated{1, Placement::kDedicated};
  EXPECT_EQ(server_rank(dedicated, 2, 0), 2);
  EXPECT_EQ(server_of(dedicated, 2, 1), -1);
  EXPECT_EQ(server_of(dedicated, 2, 2), 0);
  EXPECT_EQ(server_of(dedicated, 2, 3), -1);
}

TEST(HostilePush, OneToAMessageThatThePlanDoesNotHaveIsRefused) {
  tests::on_ranks(2, [](Transport& transport) {
    const std::array<std::byte, 8> pushed{};
    if (transport.peers().rank == 1) {
      transport.send(0, make_tag(TagSpace::kReduce, 77), pushed);
      tests::wait_for(transport, 1);
      return;
    }
    RoadSettings settings;
    settings.workers = 2;
    Communicator communicator(transport);
    Scratch scratch(settings.chunk.count);
    const HostLayout hosts(transport.peers(), settings.workers);
    Server server(communicator, scratch, settings, hosts, ParameterServer{1}, {pushed.size()});
    server.start();
    const auto serve = [&] {
      while (!server.finished()) communicator.progress(Clock::now() + std::chrono::seconds(100));
    };
    EXPECT_THROW(serve(), Error);
  });
}

}  // namespace
}  // namespace commtune
