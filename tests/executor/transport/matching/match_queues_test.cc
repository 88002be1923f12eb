#include "executor/transport/matching/match_queues.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "executor/transport/communicator.h"
#include "perfmodel/base/error.h"

namespace commtune::matching {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Tag reduce(std::uint32_t number) { return make_tag(TagSpace::kReduce, number); }
Tag distribute(std::uint32_t number) { return make_tag(TagSpace::kDistribute, number); }

/// Rank 0 of three, and what it has of ranks 1 and 2.
class MatchQueuesTest : public ::testing::Test {
 protected:
  TransferId receive(Tag tag, std::size_t room = 8) { return transfers_.open(nullptr, room, tag); }
  /// Posts one that meets no message.
  TransferId posted(Tag tag, std::size_t room = 8) {
    const TransferId id = receive(tag, room);
    EXPECT_FALSE(one_.post(id).has_value());
    return id;
  }
  /// One that no receive awaits.
  static void arrive_early(MatchQueues& from, Tag tag, std::size_t size) {
    ASSERT_EQ(from.take_receive({size, tag}), kNoTransfer);
    from.keep(Envelope{size, tag}).complete = true;
  }
  /// The size of the early message that a receive gets; tests tell messages apart by it.
  std::optional<std::size_t> early_size(Tag tag) {
    const auto message = one_.post(receive(tag, limits_.longest.count));
    return message ? std::optional(message->data.size()) : std::nullopt;
  }
  template <typename Call>
  static std::string refusal(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConflict);
      return error.what();
    }
    return "nothing was thrown";
  }

  Transfers transfers_;
  const Peers peers_{0, {"a", "b", "c"}, {0, 1, 2}};
  MessageLimits limits_{.longest = {1000}, .early = {1000}};
  MatchQueues one_{transfers_, peers_, limits_, 1}, two_{transfers_, peers_, limits_, 2};
};

TEST_F(MatchQueuesTest, AMessageGoesToTheFirstReceiveThatItsTagFits) {
  const TransferId a = posted(reduce(1)), b = posted(reduce(2)), c = posted(reduce(3)), d = posted(reduce(2));
  EXPECT_EQ(one_.take_receive({8, reduce(9)}), kNoTransfer);
  EXPECT_EQ(one_.take_receive({8, reduce(2)}), b);
  EXPECT_EQ(one_.take_receive({8, reduce(2)}), d);
  EXPECT_EQ(one_.take_receive({8, reduce(1)}), a);
  // The last one was taken out from between: what is posted next still follows the others.
  const TransferId e = posted(reduce(4));
  EXPECT_TRUE(one_.any_posted());
  EXPECT_EQ(one_.take_receive({8, reduce(4)}), e);
  EXPECT_EQ(one_.take_receive({8, reduce(3)}), c);
  EXPECT_FALSE(one_.any_posted());
}

TEST_F(MatchQueuesTest, AReceiveGetsTheFirstEarlyMessageThatItFits) {
  arrive_early(one_, reduce(1), 1);
  arrive_early(one_, reduce(2), 2);
  arrive_early(one_, reduce(1), 3);
  EXPECT_EQ(early_size(reduce(1)), 1U);
  EXPECT_EQ(early_size(reduce(1)), 3U);
  EXPECT_EQ(early_size(reduce(2)), 2U);
  EXPECT_EQ(early_size(reduce(2)), std::nullopt);
  EXPECT_TRUE(one_.any_posted());
}

TEST_F(MatchQueuesTest, AnyNumberIsOfItsTagSpaceAlone) {
  const TransferId any = posted(reduce(kAnyNumber));
  EXPECT_EQ(one_.take_receive({8, distribute(7)}), kNoTransfer);
  EXPECT_EQ(one_.take_receive({8, reduce(7)}), any);
  arrive_early(one_, distribute(7), 1);
  arrive_early(one_, reduce(8), 2);
  arrive_early(one_, reduce(7), 3);
  EXPECT_EQ(early_size(reduce(kAnyNumber)), 2U);
  EXPECT_EQ(early_size(distribute(kAnyNumber)), 1U);
}

TEST_F(MatchQueuesTest, AReceiveOfAnyNumberKeepsItsPlaceAmongTheOthers) {
  const TransferId exact = posted(reduce(5)), any = posted(reduce(kAnyNumber)), later = posted(reduce(5));
  EXPECT_EQ(one_.take_receive({8, reduce(5)}), exact);
  EXPECT_EQ(one_.take_receive({8, reduce(5)}), any);
  EXPECT_EQ(one_.take_receive({8, reduce(5)}), later);
}

TEST_F(MatchQueuesTest, LanesOfOneMessageAreApart) {
  const TransferId first = posted(reduce(3)), second = posted(reduce(3 + kLaneNumbers));
  EXPECT_EQ(one_.take_receive({8, reduce(3 + 2 * kLaneNumbers)}), kNoTransfer);
  EXPECT_EQ(one_.take_receive({8, reduce(3 + kLaneNumbers)}), second);
  EXPECT_EQ(one_.take_receive({8, reduce(3)}), first);
}

TEST_F(MatchQueuesTest, PeersHaveQueuesOfTheirOwn) {
  const TransferId id = posted(reduce(1));
  EXPECT_EQ(two_.take_receive({8, reduce(1)}), kNoTransfer);
  EXPECT_FALSE(two_.any_posted());
  EXPECT_EQ(one_.take_receive({8, reduce(1)}), id);
}

TEST_F(MatchQueuesTest, TellsWhichMessageAPeerHasBegun) {
  arrive_early(one_, make_tag(TagSpace::kControl, 3), 8);
  EXPECT_FALSE(transfers_.take_early());
  arrive_early(one_, reduce(3 + 2 * kLaneNumbers), 8);
  EXPECT_TRUE(transfers_.take_early());
  EXPECT_FALSE(transfers_.take_early());
  EXPECT_TRUE(one_.came_early(TagSpace::kReduce, 3));  // by whichever of its streams
  EXPECT_FALSE(one_.came_early(TagSpace::kReduce, 2));
  EXPECT_FALSE(one_.came_early(TagSpace::kDistribute, 3));
  EXPECT_FALSE(two_.came_early(TagSpace::kReduce, 3));
  EXPECT_EQ(early_size(reduce(3 + 2 * kLaneNumbers)), 8U);
  EXPECT_FALSE(one_.came_early(TagSpace::kReduce, 3));
}

TEST_F(MatchQueuesTest, EarlyBytesOfEachPeerAreBounded) {
  // A message counts 64 B more than it has: 436 + 64 is half of what may be kept.
  for (MatchQueues* from : {&one_, &two_}) {
    arrive_early(*from, reduce(1), 436);
    arrive_early(*from, reduce(2), 436);
    EXPECT_EQ(from->take_receive({0, reduce(3)}), kNoTransfer);
  }
  EXPECT_THAT(
      refusal([&] {
        two_.keep(Envelope{0, reduce(3)});
      }),
      AllOf(HasSubstr("rank 2 (host c) sent 1000 B"), HasSubstr("64 B more: must be at most 1000 B")));
  EXPECT_THAT(refusal([&] { two_.keep(EarlyMessage{{0, reduce(3)}, {}, true}); }), HasSubstr("64 B more"));
  // What was received leaves room, as do other limits.
  EXPECT_EQ(early_size(reduce(1)), 436U);
  arrive_early(one_, reduce(4), 436);
  limits_.early = Bytes{2000};
  arrive_early(two_, reduce(4), 900);
}

TEST_F(MatchQueuesTest, AMessageIsNoLongerThanTheLimits) {
  posted(reduce(1), 5000);
  EXPECT_THAT(refusal([&] {
                one_.take_receive({1001, reduce(1)});
              }),
              AllOf(HasSubstr("rank 1 (host b)"), HasSubstr("1001 B: must be at most 1000 B")));
  limits_.longest = Bytes{2000};
  EXPECT_NE(one_.take_receive({1001, reduce(1)}), kNoTransfer);
}

TEST_F(MatchQueuesTest, WhatIsRefusedLeavesTheQueuesAsTheyWere) {
  const TransferId small = posted(reduce(1), 4), large = posted(reduce(1), 16);
  EXPECT_THAT(refusal([&] {
                one_.take_receive({5, reduce(1)});
              }),
              AllOf(HasSubstr("rank 1 (host b) sent 5 B where at most 4 B were expected"),
                    HasSubstr("channel 1, number 1")));
  EXPECT_EQ(one_.take_receive({4, reduce(1)}), small);
  EXPECT_EQ(one_.take_receive({5, reduce(1)}), large);

  arrive_early(one_, reduce(2), 5);
  EXPECT_THAT(refusal([&] { one_.post(receive(reduce(2), 4)); }), HasSubstr("5 B where at most 4 B"));
  EXPECT_FALSE(one_.any_posted());
  EXPECT_EQ(early_size(reduce(2)), 5U);
}

TEST_F(MatchQueuesTest, AMessageThatIsComingInStaysInItsPlace) {
  ASSERT_EQ(one_.take_receive({4, reduce(1)}), kNoTransfer);
  arrive_early(one_, reduce(2), 1);
  EarlyMessage& coming = one_.keep(Envelope{4, reduce(1)});
  const std::byte* place = coming.data.data();
  arrive_early(one_, reduce(3), 1);
  EXPECT_EQ(early_size(reduce(2)), 1U);
  coming.data[3] = std::byte{7};
  const auto message = one_.post(receive(reduce(1)));
  ASSERT_TRUE(message.has_value());
  EXPECT_FALSE(message->complete);
  EXPECT_EQ(message->data.data(), place);
  EXPECT_EQ(message->data[3], std::byte{7});
}

TEST_F(MatchQueuesTest, WhatHasBeenTakenLendsItsMemoryToTheNext) {
  limits_ = {.longest = {20000}, .early = {60000}};
  const auto come = [&](std::size_t size) {
    EXPECT_EQ(one_.take_receive({size, reduce(1)}), kNoTransfer);
    return one_.keep(Envelope{size, reduce(1)}).data.data();
  };
  const auto take = [&] {
    std::optional<EarlyMessage> message = one_.post(receive(reduce(1), 20000));
    ASSERT_TRUE(message.has_value());
    one_.recycle(std::move(*message));
  };
  const std::byte* first = come(8000);
  const std::byte* second = come(9000);
  take();
  take();
  EXPECT_EQ(come(9000), second);  // the one that fits, and what was taken last before the others
  EXPECT_EQ(come(5000), first);
  EXPECT_EQ(early_size(reduce(1)), 9000U);
  EXPECT_EQ(early_size(reduce(1)), 5000U);
}

TEST_F(MatchQueuesTest, AMessageThatWaitsForItsReceiveSaysWhichSendItIs) {
  ASSERT_EQ(one_.take_receive({2, reduce(1)}), kNoTransfer);
  one_.keep(EarlyMessage{{2, reduce(1)}, std::vector<std::byte>(2), true, 17});
  const auto message = one_.post(receive(reduce(1)));
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->send, 17U);
}

}  // namespace
}  // namespace commtune::matching
