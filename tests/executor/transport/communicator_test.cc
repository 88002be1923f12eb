#include "executor/transport/communicator.h"

#include <gmock/gmock.h>

#include <array>

#include "executor/roads/steps.h"
#include "perfmodel/base/error.h"
#include "tests/executor/memory/manual_memory.h"
#include "tests/executor/recording_transport.h"

namespace commtune::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kKiB = 1024;
constexpr Deadline kPast{};  // progress() only looks

Tag reduce(std::uint32_t number) { return make_tag(TagSpace::kReduce, number); }
Tag distribute(std::uint32_t number) { return make_tag(TagSpace::kDistribute, number); }

/// Rank 0 of three, one a host.
class CommunicatorTest : public ::testing::Test {
 protected:
  void send(std::uint32_t message, std::size_t bytes, int to = 1) { send_tagged(reduce(message), bytes, to); }
  void send_tagged(Tag tag, std::size_t bytes, int to = 1) {
    communicator_.send(to, tag, std::span(memory_).first(bytes), group_);
  }
  void receive_tagged(Tag tag, int from) {
    communicator_.receive(from, tag, std::span(memory_).first(8), group_);
  }
  /// The messages whose sends the transport has been given, in order.
  std::vector<std::uint32_t> posted() const {
    std::vector<std::uint32_t> numbers;
    for (const auto& started : transport_.started()) numbers.push_back(number_of(started.tag));
    return numbers;
  }
  void end(TransferId id) {
    transport_.end(id);
    communicator_.progress(kPast);
  }

  RecordingTransport transport_{peers_of(0, {0, 1, 2})};
  Communicator communicator_{transport_};
  Group group_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(256 * kKiB);
};

TEST_F(CommunicatorTest, KeepsALinkBusyWithTwoSendsHoweverLarge) {
  for (std::uint32_t message = 0; message < 3; ++message) send(message, 200 * kKiB);
  EXPECT_THAT(posted(), ElementsAre(0, 1));
  end(0);
  EXPECT_THAT(posted(), ElementsAre(0, 1, 2));
}

TEST_F(CommunicatorTest, PostsSmallSendsUpToItsLimit) {
  // 5 of 16 KiB: four are kPosted, the fifth waits.
  for (std::uint32_t message = 0; message < 5; ++message) send(message, Communicator::kPosted / 4);
  EXPECT_THAT(posted(), ElementsAre(0, 1, 2, 3));
}

TEST_F(CommunicatorTest, HoldsNothingBackForAnotherPeer) {
  for (std::uint32_t message = 0; message < 3; ++message) send(message, 200 * kKiB, 1);
  send(3, 200 * kKiB, 2);
  EXPECT_THAT(posted(), ElementsAre(0, 1, 3));
}

TEST_F(CommunicatorTest, SendsTheMostUrgentOfThoseThatWait) {
  communicator_.set_urgency({{2, 0, 1}, {}});
  send(0, 40 * kKiB);
  send(0, 40 * kKiB);
  send(0, 40 * kKiB);  // waits
  send(2, 40 * kKiB);  // more urgent than all that were posted
  send(2, 40 * kKiB);  // waits: as urgent as one of them
  send(1, 40 * kKiB);
  EXPECT_THAT(posted(), ElementsAre(0, 0, 2, 1));
  for (TransferId id = 0; id < 4; ++id) transport_.end(id);
  communicator_.progress(kPast);
  EXPECT_THAT(posted(), ElementsAre(0, 0, 2, 1, 2, 0));
}

TEST_F(CommunicatorTest, StreamsOfAMessageAreAsUrgentAsItIs) {
  communicator_.set_urgency({{1, 0}, {}});
  send(0, 40 * kKiB);
  send(0, 40 * kKiB);
  send_tagged(lane_tag(TagSpace::kReduce, 1, 1), 40 * kKiB);
  EXPECT_EQ(transport_.started().size(), 3U);
}

TEST_F(CommunicatorTest, PostsLessOnALinkOfWhichASendGetsAPart) {
  communicator_.set_shares(std::array{1.0, 0.25, 1.0});
  EXPECT_THAT(transport_.shares(), ElementsAre(1, 0.25, 1));
  for (std::uint32_t message = 0; message < 3; ++message) send(message, Communicator::kPosted / 8);
  EXPECT_THAT(posted(), ElementsAre(0, 1));  // a quarter of kPosted
}

TEST_F(CommunicatorTest, CountsWhatHasLeftOfAMessageInAllItsStreams) {
  communicator_.set_urgency({{0, 1}, {0, 1}});
  send(1, 100);
  send_tagged(lane_tag(TagSpace::kReduce, 1, 1), 20);
  send_tagged(distribute(1), 3);
  EXPECT_EQ(communicator_.sent(TagSpace::kReduce, 1), 0U);
  for (TransferId id = 0; id < 3; ++id) end(id);
  EXPECT_EQ(communicator_.sent(TagSpace::kReduce, 1), 120U);
  EXPECT_EQ(communicator_.sent(TagSpace::kDistribute, 1), 3U);
  EXPECT_EQ(communicator_.sent(TagSpace::kReduce, 0), 0U);
}

TEST_F(CommunicatorTest, FindsWhomAMessageWaitsForInAnyOfItsStreams) {
  for (const std::uint32_t lane : {0U, 1U, 2U}) {
    const std::uint32_t message = 10 + lane;
    receive_tagged(lane_tag(TagSpace::kReduce, message, lane), 2);
    const auto pending = communicator_.oldest(message);
    ASSERT_TRUE(pending) << "stream " << lane;
    EXPECT_EQ(pending->peer, 2);
  }
  EXPECT_FALSE(communicator_.oldest(9));
}

TEST_F(CommunicatorTest, NoMessageWaitsForWhatIsSaidBesideTheTraining) {
  receive_tagged(make_tag(TagSpace::kControl, 4), 1);
  EXPECT_FALSE(communicator_.oldest(4));
  EXPECT_TRUE(communicator_.oldest());
}

TEST_F(CommunicatorTest, WhatMayNeverComeSaysNothingOfWhoIsLate) {
  receive_tagged(kStandingTag, 1);
  EXPECT_FALSE(communicator_.oldest());
  receive_tagged(make_tag(TagSpace::kControl, 4), 2);
  EXPECT_EQ(communicator_.oldest()->peer, 2);
}

TEST_F(CommunicatorTest, ReceivesSayMoreAboutWhoIsLateThanOlderSends) {
  send_tagged(reduce(4), 8, 1);
  EXPECT_EQ(communicator_.oldest(4)->peer, 1);
  receive_tagged(distribute(4), 2);
  EXPECT_EQ(communicator_.oldest(4)->peer, 2);
  EXPECT_TRUE(communicator_.oldest(4)->receive);
}

TEST_F(CommunicatorTest, ATransferGivesItsCompletionToWhoAwaitsIt) {
  Completion got;
  const auto take = [&]() -> Task {
    got = co_await communicator_.receive(1, make_tag(TagSpace::kReduce, kAnyNumber), memory_);
  };
  Task task = take();
  task.start();
  EXPECT_FALSE(task.done());
  transport_.end(0, reduce(7), 12);
  EXPECT_EQ(communicator_.progress(kPast), 1U);
  EXPECT_TRUE(task.done());
  EXPECT_EQ(got.tag, reduce(7));
  EXPECT_EQ(got.bytes, 12U);
}

TEST_F(CommunicatorTest, AGroupIsEmptyWhenTheLastOfItHasEnded) {
  const auto wait = [&]() -> Task { co_await group_.empty(); };
  send(0, 8);
  receive_tagged(distribute(0), 1);
  group_.hold();
  Task task = wait();
  task.start();
  end(0);
  end(1);
  EXPECT_FALSE(task.done());
  EXPECT_EQ(group_.pending(), 1);
  group_.release();
  EXPECT_TRUE(task.done());
}

TEST_F(CommunicatorTest, RunNamesThePeerThatItWaitedFor) {
  const auto take = [&]() -> Task { co_await communicator_.receive(2, reduce(0), memory_); };
  try {
    communicator_.run(take(), kPast);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_STREQ(
        error.what(),
        "rank 0 (host h0): receiving from rank 2 (host h2) did not end in time (channel 1, number 0)");
  }
}

TEST_F(CommunicatorTest, RunRethrowsWhatItsTaskThrew) {
  const auto fail = []() -> Task {
    throw Error(ErrorCode::kConflict, "no");
    co_return;
  };
  EXPECT_THROW(communicator_.run(fail(), kPast), Error);
}

// ---- A device's memory, which the transport cannot reach ----

class DeviceCommunicatorTest : public ::testing::Test {
 protected:
  Buffer device(std::size_t offset, std::size_t bytes) {
    return ManualMemory::on_device(std::span(bytes_).subspan(offset, bytes));
  }
  std::size_t posted() const { return transport_.started().size(); }

  ManualMemory memory_;
  RecordingTransport transport_{peers_of(0, {0, 1, 2})};
  Communicator communicator_{transport_, memory_};
  Group group_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(64, std::byte{5});
};

TEST_F(DeviceCommunicatorTest, ASendIsPostedWhenItsBytesAreOnTheHost) {
  communicator_.send(1, reduce(0), device(0, 8), group_);
  EXPECT_EQ(posted(), 0U);
  memory_.end(0);
  communicator_.progress(kPast);
  ASSERT_EQ(posted(), 1U);
  EXPECT_NE(transport_.started()[0].address, bytes_.data());
  EXPECT_EQ(*transport_.started()[0].address, std::byte{5});
  transport_.end(0);
  communicator_.progress(kPast);
  EXPECT_EQ(group_.pending(), 0);
}

TEST_F(DeviceCommunicatorTest, SendsKeepTheirOrderHoweverTheirCopiesEnd) {
  communicator_.send(1, reduce(0), device(0, 8), group_);
  communicator_.send(1, reduce(0), device(8, 4), group_);
  memory_.end(1);
  communicator_.progress(kPast);
  EXPECT_EQ(posted(), 0U);
  memory_.end(0);
  communicator_.progress(kPast);
  ASSERT_EQ(posted(), 2U);
  EXPECT_EQ(transport_.started()[0].bytes, 8U);
}

TEST_F(DeviceCommunicatorTest, AReceiveHasEndedWhenItsBytesAreOnTheDevice) {
  Completion got;
  const auto take = [&]() -> Task {
    got = co_await communicator_.receive(1, make_tag(TagSpace::kReduce, kAnyNumber), device(0, 16));
  };
  Task task = take();
  task.start();
  std::byte* const block = transport_.started().at(0).address;
  block[0] = std::byte{9};
  block[12] = std::byte{9};
  transport_.end(0, reduce(3), 12);
  communicator_.progress(kPast);
  EXPECT_FALSE(task.done());
  memory_.end(0);
  communicator_.progress(kPast);
  EXPECT_TRUE(task.done());
  EXPECT_EQ(got.bytes, 12U);
  EXPECT_EQ(bytes_[0], std::byte{9});
  EXPECT_EQ(bytes_[12], std::byte{5});  // as many as came, no more
}

TEST_F(DeviceCommunicatorTest, WhatLiesOnTheHostGoesFromWhereItIs) {
  std::vector<std::byte> host(8);
  communicator_.send(1, reduce(0), host, group_);
  ASSERT_EQ(posted(), 1U);
  EXPECT_EQ(transport_.started()[0].address, host.data());
  EXPECT_EQ(memory_.under_way(), 0U);
}

}  // namespace
}  // namespace commtune::tests
