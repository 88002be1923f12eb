#include "probes/protocol/follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "executor/transport/local/local.h"
#include "tests/executor/memory/manual_memory.h"

namespace commtune::probes {
namespace {

Command head_of_line_of(int ahead, Seconds limit) {
  Command command;
  command.action = Action::kMeasure;
  command.quantity.subject = Subject::kHeadOfLine;
  command.quantity.road = ParameterServer{2};
  command.quantity.operation = Operation::kPushPull;
  command.quantity.workers = 2;
  command.quantity.in_flight = ahead;
  command.messages = ahead + 1;
  command.bytes = 64 << 10;
  command.limit = std::chrono::duration_cast<Nanoseconds>(limit);
  return command;
}

/// Two ranks of which the second begins when the first has ended; what the first reports.
FollowerReport one_after_the_other(const Command& first, const Command& second) {
  auto transports = make_local_transports(2);
  std::latch gave_up(1), resumed(1);
  std::jthread other([&] {
    Communicator communicator(*transports[1]);
    Follower follower(communicator);
    gave_up.wait();
    follower.perform(second);
    resumed.count_down();
  });
  Communicator communicator(*transports[0]);
  Follower follower(communicator);
  FollowerReport report = follower.perform(first);
  gave_up.count_down();
  while (!resumed.try_wait()) communicator.progress(Clock::now() + std::chrono::milliseconds(1));
  return report;
}

TEST(Follower, AMeasurementThatWasGivenUpMayStillGoOn) {
  // The first rank has waited in vain when the second's messages arrive and resume what it left as it was.
  const FollowerReport first =
      one_after_the_other(head_of_line_of(8, Seconds{20e-3}), head_of_line_of(8, Seconds{0.5}));
  EXPECT_EQ(first.head.failed, Failure::kGaveUp);
  EXPECT_EQ(first.head.waited_for, 1);
  EXPECT_TRUE(first.ends.empty());
}

/// What a rank reports whose memory begins an operation and never ends it.
FollowerReport on_memory_that_hangs(Subject subject) {
  Command command;
  command.action = Action::kMeasure;
  command.quantity.subject = subject;
  command.quantity.source = 0;
  command.messages = 2;
  command.bytes = 4096;
  command.quantity.wire = WireFormat::kBfloat16;  // of casts
  command.limit = std::chrono::milliseconds(20);
  auto transports = make_local_transports(1);
  tests::ManualMemory memory;
  Communicator communicator(*transports[0], memory);
  Follower follower(communicator);
  return follower.perform(command);
}

TEST(Follower, AMemoryThatHangsIsGivenUp) {
  for (const Subject subject : {Subject::kCopy, Subject::kSum, Subject::kCast, Subject::kCastSum,
                                Subject::kLaunch, Subject::kUpload, Subject::kDownload}) {
    const FollowerReport report = on_memory_that_hangs(subject);
    EXPECT_EQ(report.head.failed, Failure::kGaveUp);
    EXPECT_EQ(report.head.waited_for, -1);
    EXPECT_TRUE(report.ends.empty());
  }
}

/// What the first of two ranks reports of a stream of 6 messages.
FollowerReport traffic(bool computing) {
  Command command = head_of_line_of(2, Seconds{60});
  command.quantity.subject = Subject::kTraffic;
  command.quantity.road = AllReduce{Collective::kRing};
  command.quantity.operation = Operation::kAllReduce;
  command.quantity.computing = computing;
  command.messages = 6;
  auto transports = make_local_transports(2);
  std::latch both_done(2);
  const auto perform = [&](std::size_t rank) {
    Communicator communicator(*transports[rank]);
    FollowerReport report = Follower(communicator).perform(command);
    both_done.arrive_and_wait();
    return report;
  };
  const std::jthread other([&] { perform(1); });
  return perform(0);
}

TEST(Follower, TrafficEndsWithItsLastMessage) {
  for (const bool computing : {false, true}) {
    const FollowerReport report = traffic(computing);
    EXPECT_EQ(report.head.failed, Failure::kNone);
    ASSERT_EQ(report.ends.size(), 1U) << computing;
    EXPECT_GT(report.ends.front(), report.head.started);
  }
}

/// Why each of two ranks could not sum by a library.
std::vector<std::string> why_no_sums_by_a_library() {
  Command command = head_of_line_of(0, Seconds{5});
  command.quantity.subject = Subject::kOperation;
  command.quantity.road = AllReduce{Collective::kLibrary};
  command.quantity.operation = Operation::kAllReduce;
  command.quantity.in_flight = 1;
  auto transports = make_local_transports(2);
  std::vector<std::string> reasons(2);
  const auto ask = [&](std::size_t rank) {
    Communicator communicator(*transports[rank]);
    Follower follower(communicator);
    const FollowerReport report = follower.perform(command);
    EXPECT_EQ(report.head.failed, Failure::kUnavailable);
    reasons[rank] = follower.why_unavailable();
  };
  std::jthread other([&] { ask(1); });
  ask(0);
  other.join();
  return reasons;
}

TEST(Follower, RanksSayAlikeWhyNoLibrarySums) {
  const std::vector<std::string> reasons = why_no_sums_by_a_library();
  EXPECT_THAT(reasons[0], ::testing::HasSubstr("rank 0"));
  EXPECT_THAT(reasons[0], ::testing::HasSubstr("library openmpi"));
  EXPECT_EQ(reasons[0], reasons[1]);
}

}  // namespace
}  // namespace commtune::probes
