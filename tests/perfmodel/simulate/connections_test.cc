#include "perfmodel/simulate/connections.h"

#include <gtest/gtest.h>

#include <map>

namespace commtune {
namespace {

constexpr Connections::TransferCost kFourParts{.time = 4, .chunk = 1, .lag = 0},
    kSmall{.time = 0.25, .chunk = 0.25, .lag = 0};

/// Messages started by hand, and what becomes of them.
class Exchange {
 public:
  explicit Exchange(std::size_t hosts, double held = 0, double taken = 0, std::size_t messages = 8) {
    connections_.reset({hosts, hosts, hosts > 9 ? 2 : hosts - 1}, messages, held, taken);
  }
  void start(std::uint32_t message, std::uint32_t host, Connections::TransferCost cost = kFourParts) {
    connections_.start(message, host, cost, now_);
  }
  void pass(double until) {
    while (connections_.soonest() <= until) {
      now_ = connections_.soonest();
      const Connections::Event event = connections_.handle();
      if (event.sent) sent_[event.message] = now_;
      if (event.arrived) arrived_[event.message] = connections_.stages(event.message);
    }
    now_ = until;
  }
  void end() {
    while (connections_.soonest() < Connections::kNever) pass(connections_.soonest());
  }
  double sent(std::uint32_t message) const { return sent_.at(message); }
  bool is_sent(std::uint32_t message) const { return sent_.contains(message); }
  StageInterval reduce(std::uint32_t message) const { return arrived_.at(message)[0]; }
  StageInterval distribute(std::uint32_t message) const { return arrived_.at(message)[1]; }
  Connections& connections() { return connections_; }

 private:
  Connections connections_;
  double now_ = 0;
  std::map<std::uint32_t, double> sent_;
  std::map<std::uint32_t, std::array<StageInterval, 2>> arrived_;
};

TEST(Connections, AnswersFollowThePushAChunkBehind) {
  // Pushed 0 to 4, and 0.5 s until it has come; answers leave from 1.5 to 5.5.
  for (const std::size_t hosts : {2, 3, 8, 100}) {
    Exchange exchange(hosts);
    exchange.start(0, 1, {.time = 4, .chunk = 1, .lag = 0.5});
    exchange.end();
    EXPECT_DOUBLE_EQ(exchange.sent(0), 4) << hosts;
    EXPECT_DOUBLE_EQ(exchange.reduce(0).from, 0) << hosts;
    EXPECT_DOUBLE_EQ(exchange.reduce(0).end, 4.5) << hosts;
    EXPECT_DOUBLE_EQ(exchange.distribute(0).from, 1.5) << hosts;
    EXPECT_DOUBLE_EQ(exchange.distribute(0).end, 6) << hosts;
  }
}

TEST(Connections, PushesMayLeaveSomeTimeAfterTheStart) {
  // As above, 2 s later.
  Exchange exchange(3);
  exchange.start(0, 1, {.time = 4, .chunk = 1, .lag = 0.5, .before = 2});
  exchange.end();
  EXPECT_DOUBLE_EQ(exchange.sent(0), 6);
  EXPECT_DOUBLE_EQ(exchange.reduce(0).from, 2);
  EXPECT_DOUBLE_EQ(exchange.distribute(0).end, 8);
}

TEST(Connections, OneHostSendsNothing) {
  Exchange exchange(1);
  exchange.start(0, 0);
  exchange.end();
  EXPECT_DOUBLE_EQ(exchange.distribute(0).end, 8);
}

TEST(Connections, TwoServersTakeTwoMessagesNoSoonerThanOneDoes) {
  // To one: pushes 0 to 4 to 8, answers 1 to 5 to 9. To two: what host 0 pushes to server 1 waits from 1 to 5
  // for the answers of server 0.
  Exchange to_one(4), to_two(4);
  to_one.start(0, 0);
  to_one.start(1, 0);
  to_two.start(0, 0);
  to_two.start(1, 1);
  to_one.end();
  to_two.end();
  EXPECT_DOUBLE_EQ(to_one.distribute(1).end, 9);
  EXPECT_DOUBLE_EQ(to_two.reduce(1).end, 8);
  EXPECT_DOUBLE_EQ(to_two.distribute(1).end, 9);
}

TEST(Connections, WhatIsUrgentWaitsForWhatSocketsHold) {
  // Message 1 is pushed from 0 on; message 0 comes at 1 and waits until 2.5. Message 1 has 1.5 s left at 6.5.
  Exchange exchange(2, 1.5);
  exchange.start(1, 0);
  exchange.pass(1);
  exchange.start(0, 0);
  exchange.end();
  EXPECT_DOUBLE_EQ(exchange.reduce(0).from, 2.5);
  EXPECT_DOUBLE_EQ(exchange.reduce(0).end, 6.5);
  EXPECT_DOUBLE_EQ(exchange.reduce(1).end, 8);
}

TEST(Connections, APushCountsAsSentOnceSocketsHoldTheRest) {
  Exchange exchange(4, 0, 0.5);
  exchange.start(0, 0);
  exchange.end();
  EXPECT_DOUBLE_EQ(exchange.sent(0), 3.5);
}

TEST(Connections, APushCountsAsSentWhenHalfOfTheHostsHaveSentIt) {
  // Of three others, hosts 1 to 3, host 1 sends answers of its own until 8. Half of four are the server's
  // host and two more.
  Exchange exchange(4);
  exchange.start(0, 1);
  exchange.start(1, 0);
  exchange.end();
  EXPECT_DOUBLE_EQ(exchange.sent(1), 4);
  EXPECT_DOUBLE_EQ(exchange.reduce(1).end, 8);
}

TEST(Connections, ASmallUrgentPushIsTakenAtOnce) {
  Exchange exchange(2, 1.5, 0.5);
  exchange.start(2, 0);
  exchange.pass(1);
  exchange.start(0, 0, kSmall);
  exchange.start(3, 0, kSmall);
  exchange.pass(1.25);
  EXPECT_TRUE(exchange.is_sent(0));
  EXPECT_FALSE(exchange.is_sent(3)) << "sockets are full of what is more urgent";
  exchange.end();
  EXPECT_DOUBLE_EQ(exchange.reduce(0).end, 2.75);
}

TEST(Connections, SocketsTakeASmallPushBesideTheRestOfAnother) {
  Exchange exchange(2, 0, 1);
  exchange.start(0, 0);
  exchange.pass(3.5);
  exchange.start(1, 0, kSmall);
  exchange.pass(3.75);
  EXPECT_TRUE(exchange.is_sent(1));
}

TEST(Connections, NobodyAsksWhatIsSentWithoutACredit) {
  Exchange exchange(4, 0, Connections::kNever);
  exchange.start(0, 0);
  exchange.end();
  EXPECT_FALSE(exchange.is_sent(0));
  EXPECT_DOUBLE_EQ(exchange.distribute(0).end, 5);
}

TEST(Connections, ManyMessagesOfManyHostsAreHandledInTime) {
  // Two for each of 64 servers: those in each other's way are far from all, but the average host has as much
  // to do. 126 of 63 connections of 4 s.
  constexpr std::uint32_t kHosts = 64;
  Exchange exchange(kHosts, 0, Connections::kNever, std::size_t{2} * kHosts);
  for (std::uint32_t message = 0; message < 2 * kHosts; ++message) exchange.start(message, message % kHosts);
  exchange.end();
  for (std::uint32_t message = 0; message < 2 * kHosts; ++message) {
    EXPECT_GE(exchange.distribute(message).end, 5);
    EXPECT_LE(exchange.distribute(message).end, 21);
  }
}

TEST(Connections, OfAllMessagesABusyHostsConnectionsHaveAsMuchAsItsCard) {
  const auto time = [](std::size_t hosts, std::size_t servers, std::size_t messages) {
    Connections connections;
    connections.reset({hosts, servers, hosts > 9 ? 2 : hosts - 1}, messages, 0, 0);
    return connections.time_by_occupancy();
  };
  // Of four messages for four servers, a connection has one push and one message's answers.
  EXPECT_DOUBLE_EQ(time(4, 4, 8), 2);
  EXPECT_DOUBLE_EQ(time(64, 64, 1000), 32);
  // With one server one of either, in opposite directions, for all of the message's time.
  EXPECT_DOUBLE_EQ(time(4, 1, 8), 1);
  EXPECT_DOUBLE_EQ(time(64, 1, 1000), 1);
  // With two of four: their own, and a third of what goes to the other one.
  EXPECT_DOUBLE_EQ(time(4, 2, 8), 2 / (1 + 1.0 / 3));
  // 48 of 64 among the others: two neighbours of each, of which two thirds have servers.
  EXPECT_DOUBLE_EQ(time(64, 48, 1000), 48 / (1 + 2.0 / 3));
  EXPECT_DOUBLE_EQ(time(1, 1, 8), 1);
}

TEST(Connections, KnowNothingOfWhatWasBeforeTheyWereReset) {
  Exchange exchange(4, 1, 0.5);
  exchange.start(0, 0);
  exchange.start(1, 2);
  exchange.pass(2);
  exchange.connections().reset({3, 3, 2}, 1, 0, 0);
  EXPECT_EQ(exchange.connections().soonest(), Connections::kNever);
  exchange.start(0, 2);
  exchange.end();
  EXPECT_DOUBLE_EQ(exchange.reduce(0).end, 6);
  EXPECT_DOUBLE_EQ(exchange.distribute(0).end, 7);
}

}  // namespace
}  // namespace commtune
