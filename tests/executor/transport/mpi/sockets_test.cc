#include "executor/transport/mpi/sockets.h"

#include <gmock/gmock.h>

#include "tests/executor/transport/loopback.h"

namespace commtune::tests {
namespace {

using ::testing::UnorderedElementsAre;

constexpr int kLimit = 65'536;

TEST(LibrarySockets, ListenWhereTheProcessDidNotBefore) {
  const LoopbackListener earlier;
  const LibrarySockets sockets;
  const LoopbackListener first, second;
  EXPECT_THAT(sockets.listening(), UnorderedElementsAre(first.port(), second.port()));
}

TEST(LibrarySockets, AreLimitedInBothDirections) {
  LoopbackListener other_rank;  // as if in another process: there before
  const LibrarySockets sockets;
  LoopbackListener own;
  const auto own_ports = sockets.listening();
  const auto opened = other_rank.connection(), accepted = own.connection();
  sockets.limit_unsent(kLimit, own_ports, std::vector{other_rank.port()});
  EXPECT_EQ(opened.from.unsent_limit(), kLimit);
  EXPECT_EQ(accepted.to.unsent_limit(), kLimit);
}

TEST(LibrarySockets, LeaveAConnectionAloneThatWasThereBefore) {
  LoopbackListener other_rank;
  const auto foreign = other_rank.connection();
  const int usual = foreign.from.unsent_limit();
  const LibrarySockets sockets;
  sockets.limit_unsent(kLimit, {}, std::vector{other_rank.port()});
  EXPECT_EQ(foreign.from.unsent_limit(), usual);
  EXPECT_EQ(foreign.to.unsent_limit(), usual);
}

TEST(LibrarySockets, LeaveAConnectionAloneThatAnotherThreadOpensMeanwhile) {
  LoopbackListener foreign, other_rank;
  const int usual = foreign.connection().from.unsent_limit();
  const LibrarySockets sockets;
  const LoopbackListener own;
  const auto opened = foreign.connection();
  sockets.limit_unsent(kLimit, sockets.listening(), std::vector{other_rank.port()});
  EXPECT_EQ(opened.from.unsent_limit(), usual);
  EXPECT_EQ(opened.to.unsent_limit(), usual);
}

TEST(LibrarySockets, LeaveAConnectionAloneToAServerThatTheProcessOpensLater) {
  // Its port was not among those at which the process listened when the library had started.
  const LibrarySockets sockets;
  const auto own_ports = sockets.listening();
  LoopbackListener later;
  const auto accepted = later.connection();
  const int usual = accepted.to.unsent_limit();
  sockets.limit_unsent(kLimit, own_ports, {});
  EXPECT_EQ(accepted.to.unsent_limit(), usual);
}

}  // namespace
}  // namespace commtune::tests
