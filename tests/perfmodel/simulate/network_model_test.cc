#include "perfmodel/simulate/network_model.h"

#include <gtest/gtest.h>

#include <map>

namespace commtune {
namespace {

/// Alone `latency` + 0.05 s/B, of which the channel is kept 0.05 s/B; either stage half of it.
RoadCost line(double latency = 0) {
  const auto cost = [](double alpha, double beta) {
    return StageCost{Curve{Seconds{alpha}, SecondsPerByte{beta}}, Curve{Seconds{0}, SecondsPerByte{beta}}};
  };
  RoadCost road;
  road.both = cost(latency, 0.05);
  road.reduce = road.distribute = cost(latency / 2, 0.025);
  return road;
}

/// The network alone, without a plan: messages are started by hand and the clock goes from event to event.
class Network {
 public:
  explicit Network(RoadCost cost, std::uint64_t credit = 1 << 20, double kappa = 0, bool coupled = true)
      : cost_(std::move(cost)), flat_(cost_) {
    clock_.reset(kappa);
    model_.reset(flat_, 8, coupled, {.bytes = credit, .most = 1 << 20}, clock_.disturbed());
  }

  void start(std::uint32_t urgency, double bytes, double copying = 0) {
    model_.start(urgency, {urgency % 2, bytes, copying}, clock_);
    ++under_way_;
  }
  void start(std::uint32_t urgency, double bytes, Stage stage) {
    model_.start(urgency, {urgency, bytes, 0}, stage, clock_);
    ++under_way_;
  }
  /// Lets pass what happens until then.
  void pass(double until) {
    while (model_.advance(until, false, clock_) < until) collect();
    collect();
  }
  void end() {
    while (under_way_ > 0) {
      model_.advance(std::numeric_limits<double>::infinity(), false, clock_);
      collect();
    }
  }
  /// When the credit allows another message; no later than `until`.
  double pass_until_credit(double until) { return model_.advance(until, true, clock_); }
  /// When every worker has a message; what has not come is an error of the test's.
  double arrival(std::uint32_t urgency) const { return arrivals_.at(urgency).distribute.end; }
  const NetworkModel::Arrival& intervals(std::uint32_t urgency) const { return arrivals_.at(urgency); }
  bool has_come(std::uint32_t urgency) const { return arrivals_.contains(urgency); }

  NetworkModel& model() { return model_; }
  ComputeClock& clock() { return clock_; }

 private:
  void collect() {
    for (const NetworkModel::Arrival& arrival : model_.arrived()) arrivals_[arrival.urgency] = arrival;
    under_way_ -= static_cast<int>(model_.arrived().size());
    model_.forget_arrived();
  }

  const RoadCost cost_;
  const FlatRoad flat_;
  NetworkModel model_;
  ComputeClock clock_;
  std::map<std::uint32_t, NetworkModel::Arrival> arrivals_;
  int under_way_ = 0;
};

TEST(NetworkModel, AMessageAloneTakesWhatItTakesAlone) {
  // 40 B: 2 s of the channel in two rounds, each of which is there 1.5 s after it left. 0 .. 1, there at 2.5;
  // 2.5 .. 3.5, there at 5. Without credit the same.
  for (const std::uint64_t credit : {1U << 20, 0U}) {
    Network network(line(3), credit);
    network.start(0, 40);
    network.end();
    EXPECT_DOUBLE_EQ(network.intervals(0).reduce.from, 0);
    EXPECT_DOUBLE_EQ(network.intervals(0).reduce.end, 2.5);
    EXPECT_DOUBLE_EQ(network.intervals(0).distribute.from, 2.5);
    EXPECT_DOUBLE_EQ(network.arrival(0), 5);
    EXPECT_DOUBLE_EQ(network.model().under_way(), 5);
    EXPECT_DOUBLE_EQ(network.model().bytes_time(), 2);
  }
}

TEST(NetworkModel, TakesAsLongInHoweverManyRounds) {
  for (const Rounds rounds : {Rounds{1, 0}, Rounds{4, 4}, Rounds{40, 0}, Rounds{40, 40}}) {
    RoadCost cost = line(3);
    cost.rounds = rounds;
    Network network(cost);
    network.start(0, 40);
    network.end();
    EXPECT_NEAR(network.arrival(0), 5, 1e-9) << rounds.reduce << " + " << rounds.distribute;
  }
}

TEST(NetworkModel, TheMoreUrgentHasItsRoundsFirstAndNothingIsLost) {
  // Two rounds of 1 s each: the first one's 0 .. 2, then the other's 2 .. 4.
  Network network(line());
  network.start(0, 40);
  network.start(1, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(0), 2);
  EXPECT_DOUBLE_EQ(network.arrival(1), 4);
  EXPECT_DOUBLE_EQ(network.model().under_way(), 4);
}

TEST(NetworkModel, TheMoreUrgentOvertakesWhatIsUnderWay) {
  // Message 1 has 0 .. 0.5 of its first round, message 0 its two at 0.5 .. 2.5, and message 1 the rest.
  Network network(line());
  network.start(1, 40);
  network.pass(0.5);
  network.start(0, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(0), 2.5);
  EXPECT_DOUBLE_EQ(network.arrival(1), 4);
}

TEST(NetworkModel, NothingOvertakesWhatSocketsHold) {
  // As above, but at 0.5 sockets have all of message 1's round, until 1. Message 0's first round leaves at 1
  // ..
  // 2. They had it at 1.5 and took of message 1's second round what leaves until 2.5 before message 0's next
  // one was there at 2: that leaves at 2.5 .. 3.5, and the rest of message 1 at 3.5 .. 4.
  RoadCost cost = line();
  cost.head_of_line = Seconds{0.5};
  Network network(cost);
  network.start(1, 40);
  network.pass(0.5);
  network.start(0, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.intervals(0).reduce.from, 1);
  EXPECT_DOUBLE_EQ(network.arrival(0), 3.5);
  EXPECT_DOUBLE_EQ(network.arrival(1), 4);
}

TEST(NetworkModel, DedicatedServersPushAndAnswerAtTheSameTime) {
  // 1 s each way: pushes 0 .. 1 .. 2, answers 1 .. 2 .. 3.
  RoadCost cost = line();
  cost.shared_channel = false;
  Network network(cost);
  network.start(0, 40);
  network.start(1, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(0), 2);
  EXPECT_DOUBLE_EQ(network.arrival(1), 3);
  EXPECT_DOUBLE_EQ(network.model().bytes_time(), 2);  // of the busier channel
}

TEST(NetworkModel, CreditIsThereWhenSocketsHaveTakenEnough) {
  // 40 B in 2 s: 20 B are left after 1 s.
  Network network(line(), 20);
  EXPECT_TRUE(network.model().credit_allows()) << "nothing is under way";
  network.start(0, 40);
  EXPECT_FALSE(network.model().credit_allows());
  network.pass(0.9);
  EXPECT_FALSE(network.model().credit_allows());
  EXPECT_DOUBLE_EQ(network.pass_until_credit(10), 1);
  EXPECT_TRUE(network.model().credit_allows());
}

TEST(NetworkModel, ThroughServersTheCreditIsThereAfterThePush) {
  RoadCost cost = line(2);
  cost.through_servers = true;
  Network network(cost, 0);
  network.start(0, 40);
  network.pass(0.9);
  EXPECT_FALSE(network.model().credit_allows());
  network.pass(1.1);
  EXPECT_TRUE(network.model().credit_allows());
  EXPECT_FALSE(network.has_come(0));
}

TEST(NetworkModel, NobodySeesWhatAnOpaqueRoadHasSentBeforeItHasEnded) {
  RoadCost cost = line(3);
  cost.rounds = {1, 0};
  cost.opaque = true;
  Network network(cost, 20);
  network.start(0, 40);
  network.pass(4.9);
  EXPECT_FALSE(network.model().credit_allows());
  EXPECT_FALSE(network.has_come(0));
  network.pass(5);
  EXPECT_TRUE(network.model().credit_allows());
  EXPECT_TRUE(network.has_come(0));
}

TEST(NetworkModel, AStageOfItsOwnTakesWhatItTakes) {
  // 1 s of the channel and 1.5 s more.
  Network network(line(3));
  network.start(0, 40, Stage::kReduce);
  network.pass(2.4);
  EXPECT_FALSE(network.has_come(0)) << "something waits for its end";
  network.pass(2.5);
  EXPECT_DOUBLE_EQ(network.intervals(0).reduce.end, 2.5);
  network.start(1, 40, Stage::kDistribute);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(1), 5);
}

TEST(NetworkModel, CopyingKeepsTheChannel) {
  // Two messages of 2 s of bytes, the first one copied for 1 s.
  Network network(line());
  network.start(0, 40, 1);
  network.start(1, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(0), 3);
  EXPECT_DOUBLE_EQ(network.arrival(1), 5);
}

TEST(NetworkModel, TellsTheComputeSideWhenTheChannelIsKept) {
  // Compute at half speed past 0 .. 2: 3 s of work take until 4.
  Network network(line(), 1 << 20, 1);
  network.start(0, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.clock().when(3), 4);
}

/// So many seconds a byte for both stages, alone and of the channel; either stage half of it.
RoadCost two_servers_in_turn(double alone, double kept) {
  const auto curve = [](double beta) { return Curve{Seconds{0}, SecondsPerByte{beta}}; };
  RoadCost cost;
  cost.both = {curve(alone), curve(kept)};
  cost.reduce = cost.distribute = {curve(alone / 2), curve(kept / 2)};
  cost.through_servers = true;
  cost.in_turn = 2;
  return cost;
}

TEST(NetworkModel, WholeMessagesQueueAtTheServerThatTheyGoTo) {
  // The card has four times the speed of a server: 40 B are pushed in 0.25 s, which a server takes in 1 s.
  // Messages 0 and 2 go to the first server, 1 to the second.
  RoadCost cost = two_servers_in_turn(0.05, 0.0125);
  cost.shared_channel = false;
  Network network(cost);
  for (std::uint32_t message = 0; message < 3; ++message) network.start(message, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.intervals(0).reduce.end, 1);
  EXPECT_DOUBLE_EQ(network.intervals(1).reduce.end, 1.25);
  EXPECT_DOUBLE_EQ(network.intervals(2).reduce.end, 2);
}

TEST(NetworkModel, APushToAServerInTurnIsCountedUntilItHasBeenSent) {
  // 40 B keep each connection between the two hosts for 1 s either way, as they keep the card. Servers 0 and
  // 1 take a message each, but without a credit the second one waits for the first one's push.
  RoadCost cost = two_servers_in_turn(0.1, 0.025);
  const auto may_follow_at = [&] {
    Network network(cost, 0);
    network.start(0, 40);
    return network.pass_until_credit(10);
  };
  EXPECT_DOUBLE_EQ(may_follow_at(), 1);
  cost.in_turn = 0;
  EXPECT_DOUBLE_EQ(may_follow_at(), 0.5);
}

TEST(NetworkModel, OfWhatIsUrgentWaitsForSocketsHoldHalf) {
  // Sent but for 0.25 s. 4 s alone: 1 s of latency for either stage of one chunk.
  RoadCost cost = two_servers_in_turn(0.1, 0.025);
  cost.head_of_line = Seconds{0.5};
  Network network(cost, 0);
  network.start(0, 40);
  EXPECT_DOUBLE_EQ(network.pass_until_credit(10), 0.75);
  network.end();
  EXPECT_DOUBLE_EQ(network.intervals(0).reduce.end, 2);
  EXPECT_DOUBLE_EQ(network.arrival(0), 4);
}

TEST(NetworkModel, LongerMessagesThanWereMeasuredHaveNoMoreLatency) {
  // 40 B: 1 s on a connection, 1 s of latency a stage; 80 B: 2 s there.
  RoadCost cost = two_servers_in_turn(0.1, 0.025);
  cost.measured_largest = Bytes{40};
  Network network(cost);
  network.start(0, 80);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(0), 2 * (2 + 1));
}

/// 10 B a chunk. 40 B keep a connection for 1 s either way and take 2 s alone: a chunk of 0.25 s, and 0.75 s.
RoadCost one_server() {
  RoadCost cost = two_servers_in_turn(0.05, 0.025);
  cost.in_turn = 1;
  cost.server_hosts = {4, 1};
  cost.traits = {.chunk = Bytes{10}, .uncut = Bytes{10}, .cuts = 4};
  return cost;
}

TEST(NetworkModel, AnswersOfOneServerLeaveOneAfterTheOther) {
  // 40 B: pushed until 1, answered from 0.625 to 1.625. 4 B: pushed from 1 to 1.1, answered after that.
  Network network(one_server());
  network.start(0, 40);
  network.start(1, 4);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(0), 2);
  EXPECT_DOUBLE_EQ(network.intervals(1).reduce.end, 1.1);
  EXPECT_DOUBLE_EQ(network.arrival(1), 1.725);
}

TEST(NetworkModel, TheFirstChunkIsOneOfASegment) {
  // As above through two servers of that host: 20 B each, in four chunks of 5 B.
  RoadCost cost = one_server();
  cost.segments = 2;
  Network network(cost);
  network.start(0, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.intervals(0).distribute.from, 0.25 + 0.375);
  cost.segments = 8;  // 5 B are not cut
  Network uncut(cost);
  uncut.start(0, 40);
  uncut.end();
  EXPECT_DOUBLE_EQ(uncut.intervals(0).distribute.from, 1);
  EXPECT_DOUBLE_EQ(uncut.arrival(0), 2);
}

TEST(NetworkModel, StepsOfOneServerShareTheChannel) {
  Network network(one_server(), 1 << 20, 0, false);
  network.start(0, 40, Stage::kReduce);
  network.end();
  EXPECT_DOUBLE_EQ(network.intervals(0).reduce.end, 1);
}

TEST(NetworkModel, ALocalSumGoesBeforeThePush) {
  // Of 1.75 s beyond bytes 0.75 are on the way. Half of the rest goes before the push of 40 B, and all of it
  // where another message is handed out meanwhile.
  RoadCost cost = one_server();
  cost.both.alone = Curve{Seconds{1}, SecondsPerByte{0.05}};
  cost.on_the_way = Seconds{0.75};
  cost.rounds = {2, 2, 1, true};
  cost.head_of_line = Seconds{10};
  Network network(cost, 0);
  network.start(0, 40);
  EXPECT_DOUBLE_EQ(network.pass_until_credit(10), 1.5) << "sockets are handed no more than leaves";
  network.start(1, 40);
  network.pass(3);
  EXPECT_DOUBLE_EQ(network.pass_until_credit(10), 3.5);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(0), 3);
  // Without a limit each begins at once.
  Network unlimited(cost);
  unlimited.start(0, 40);
  unlimited.start(1, 40);
  unlimited.end();
  EXPECT_DOUBLE_EQ(unlimited.arrival(0), 3);
  EXPECT_DOUBLE_EQ(unlimited.intervals(1).reduce.from, 1.5);
}

TEST(NetworkModel, ServersOfTwoHostsAreInEachOthersWay) {
  // 1.5 s on each connection: pushes until 1.5, answers until 3; message 2's push at host 1 waits for message
  // 1's answers, or these wait for it.
  Network network(two_servers_in_turn(0.05, 0.0375));
  for (std::uint32_t message = 0; message < 3; ++message) network.start(message, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(0), 3);
  EXPECT_DOUBLE_EQ(network.intervals(1).reduce.end, 1.5);
  EXPECT_GE(network.arrival(2), 4.5);
}

TEST(NetworkModel, AMessageIsThereWhenItsLastConnectionHasPassedIt) {
  // Servers on hosts 0 and 2 of four; 40 B keep a connection for 1.5 s, a chunk of 10 B for 0.375. Host 0's
  // push of message 1 waits from 0.375 on for the answers of message 0 to host 2: 3 s, and a chunk until they
  // answer.
  RoadCost cost = two_servers_in_turn(0.025, 0.025);
  cost.server_hosts = {4, 1};
  cost.traits = {.chunk = Bytes{10}, .uncut = Bytes{10}, .cuts = 4};
  const auto end_of_both = [](const FlatRoad& road) {
    ComputeClock clock;
    clock.reset(0);
    NetworkModel model;
    model.reset(road, 2, true, {.bytes = 1 << 20, .most = 1 << 20}, false);
    for (const std::uint32_t server : {0, 1}) model.start(server, {server, 40, 0}, clock);
    double end = 0;
    for (int arrived = 0; arrived < 2; model.forget_arrived()) {
      model.advance(std::numeric_limits<double>::infinity(), false, clock);
      for (const NetworkModel::Arrival& arrival : model.arrived()) {
        end = std::max(end, arrival.distribute.end);
        ++arrived;
      }
    }
    return end;
  };
  EXPECT_DOUBLE_EQ(end_of_both(FlatRoad(cost)), 3.375);
  // Hosts 1 and 3 alone have nothing for each other: 2 s a connection, and a chunk.
  EXPECT_DOUBLE_EQ(end_of_both(among_neighbours(FlatRoad(cost))), 2.5);
  EXPECT_TRUE(is_among_few(cost));
  cost.server_hosts.all = 10;
  EXPECT_FALSE(is_among_few(cost)) << "neighbours stand for all anyway";
  EXPECT_DOUBLE_EQ(end_of_both(FlatRoad(cost)), end_of_both(among_neighbours(FlatRoad(cost))));
}

TEST(NetworkModel, OfServersInTurnTheSlowestCardIsTheChannel) {
  RoadCost cost = two_servers_in_turn(0.05, 0.0375);
  cost.server_hosts.connections_bind = false;
  RoadCost parts = cost;
  parts.in_turn = 0;
  Network network(cost, 0), as_parts(parts, 0);
  for (Network* each : {&network, &as_parts}) {
    for (std::uint32_t message = 0; message < 3; ++message) each->start(message, 40);
    each->end();
  }
  for (std::uint32_t message = 0; message < 3; ++message) {
    EXPECT_DOUBLE_EQ(network.arrival(message), as_parts.arrival(message));
  }
}

TEST(NetworkModel, MessagesOnConnectionsSlowComputeToo) {
  // 40 B are under way from 0 to 2: 3 s of work take until 4.
  Network network(two_servers_in_turn(0.05, 0.025), 1 << 20, 1);
  network.start(0, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.arrival(0), 2);
  EXPECT_DOUBLE_EQ(network.clock().when(3), 4);
}

TEST(NetworkModel, RoundsInsideHostsWaitForLittle) {
  // 40 B in four rounds of 0.5 s each. Of 4 s of latency the rounds inside hosts, the first and the last,
  // have 0.2 s each, the push and the answer 1.8 s.
  RoadCost cost = line(4);
  cost.rounds = {2, 2, 0.2, true};
  Network network(cost);
  network.start(0, 40);
  network.end();
  EXPECT_DOUBLE_EQ(network.intervals(0).reduce.end, 0.5 + 0.2 + 0.5 + 1.8);
  EXPECT_DOUBLE_EQ(network.arrival(0), 6);
}

TEST(NetworkModel, RoundsInsideHostsTakeNothingFromAStageOrFewerRounds) {
  RoadCost cost = line(4);
  cost.rounds = {2, 2, 0.2, true};
  Network stages(cost);
  stages.start(0, 40, Stage::kReduce);
  stages.end();
  EXPECT_DOUBLE_EQ(stages.intervals(0).reduce.end, 3);
  stages.start(0, 40, Stage::kDistribute);
  stages.end();
  EXPECT_DOUBLE_EQ(stages.intervals(0).distribute.end, 6);
  cost.most_rounds = 2;
  Network coarse(cost);
  coarse.start(0, 40);
  coarse.end();
  EXPECT_DOUBLE_EQ(coarse.arrival(0), 6);
}

TEST(NetworkModel, KnowsNothingOfWhatWasBeforeItWasReset) {
  const RoadCost cost = line(3);
  const FlatRoad road(cost);
  ComputeClock clock;
  clock.reset(0);
  NetworkModel model;
  for (int i = 0; i < 2; ++i) {
    model.reset(road, 2, true, {.bytes = 0, .most = 100}, false);
    EXPECT_EQ(model.under_way(), 0);
    model.start(0, {0, 40, 0}, clock);
    model.start(1, {1, 40, 0}, clock);
    model.advance(std::numeric_limits<double>::infinity(), false, clock);
  }
}

}  // namespace
}  // namespace commtune
