#include "tests/cluster/link_queue.h"

#include <gtest/gtest.h>

#include <memory>

namespace commtune::cluster {
namespace {

using std::chrono::microseconds;

constexpr std::int64_t kGigabit = 125'000'000;  // 1250 B take 10 us
constexpr std::int64_t kPacket = 1250;
constexpr std::int64_t kAmple = 1 << 20;

/// A train of packets of 1250 B that arrives evenly during [first, last] us.
std::unique_ptr<Frame> train(std::size_t packets, int first, int last, std::int64_t bytes = kPacket) {
  auto frame = std::make_unique<Frame>();
  frame->train = {packets, bytes, bytes};
  frame->passage = {microseconds(first), microseconds(last)};
  return frame;
}

Passage us(int first, int last) { return {microseconds(first), microseconds(last)}; }

// 4 packets that arrive at the link's own rate leave as they come: the serialisation is not paid twice.
TEST(LinkQueue, PassesATrainOnAsItComes) {
  LinkQueue link(kGigabit, kAmple);
  const auto frame = train(4, 100, 140);
  EXPECT_EQ(link.join(frame.get()), microseconds(130));  // the first bit of the last packet
  link.serve_until(microseconds(130));
  EXPECT_TRUE(LinkQueue::done(*frame));
  EXPECT_EQ(frame->leaves, us(100, 140));
}

// Half the rate: it starts with the first bit and needs 4 * 20 us.
TEST(LinkQueue, SlowsATrainDown) {
  LinkQueue link(kGigabit / 2, kAmple);
  const auto frame = train(4, 100, 140);
  link.serve_until(link.join(frame.get()));
  EXPECT_EQ(frame->leaves, us(100, 180));
}

// Five times the rate: each packet takes 2 us, and the last one cannot end before its last bit came at 140
// us; the first came during [100, 110] and may start at 108 us.
TEST(LinkQueue, CannotSpeedATrainUp) {
  LinkQueue link(5 * kGigabit, kAmple);
  const auto frame = train(4, 100, 140);
  link.serve_until(link.join(frame.get()));
  EXPECT_EQ(frame->leaves, us(108, 140));
}

// A train of 4 and a single packet that arrives 15 us after its start. By then one packet of the train has
// left and the second (ready at 10) is on its way until 20; then the single one until 30, then the others, at
// 40 and 50.
TEST(LinkQueue, LetsASmallFrameInBetween) {
  LinkQueue link(kGigabit, kAmple);
  const auto big = train(4, 0, 40);
  const auto small = train(1, 15, 25);
  link.join(big.get());
  EXPECT_EQ(link.join(small.get()), microseconds(15));
  link.serve_until(microseconds(15));
  EXPECT_TRUE(LinkQueue::done(*small));
  EXPECT_FALSE(LinkQueue::done(*big));
  EXPECT_EQ(small->leaves, us(20, 30));
  link.serve_until(microseconds(30));
  EXPECT_EQ(big->leaves, us(0, 50));
}

// Two trains of 4 at full rate at once: 8 packets take 80 us, taking turns; the one that joined first ends
// first.
TEST(LinkQueue, SharesBetweenTwoTrains) {
  LinkQueue link(kGigabit, kAmple);
  const auto one = train(4, 0, 40);
  const auto two = train(4, 0, 40);
  link.join(one.get());
  link.join(two.get());
  link.serve_until(microseconds(30));
  EXPECT_EQ(one->leaves, us(0, 70));
  EXPECT_EQ(two->leaves, us(10, 80));
}

// Five senders at a fifth of the rate fill the link exactly: nobody waits longer than four packets of 10 us.
TEST(LinkQueue, CarriesManySlowTrainsAtOnce) {
  LinkQueue link(kGigabit, kAmple);
  std::vector<std::unique_ptr<Frame>> frames;
  for (int i = 0; i < 5; ++i) {
    frames.push_back(train(10, 0, 500));
    link.join(frames.back().get());
  }
  link.serve_until(microseconds(500));
  for (const auto& frame : frames) EXPECT_LE(frame->leaves.last, microseconds(540));
}

// Two trains of 4 arrive at once into a buffer for one packet and a half (1875 B). Times in us, "waiting" =
// what the link still has to send: at 0 one.0 is sent until 10, two.0 finds 10 us = 1250 B waiting and does
// not fit. At 10 the link is idle again and the same happens. So all of one passes and all of two is lost.
TEST(LinkQueue, LosesWhatDoesNotFit) {
  LinkQueue link(kGigabit, kPacket + kPacket / 2);
  const auto one = train(4, 0, 40);
  const auto two = train(4, 0, 40);
  link.join(one.get());
  link.join(two.get());
  link.serve_until(microseconds(30));
  EXPECT_TRUE(one->lost.none());
  EXPECT_EQ(two->lost.count(), 4U);
  EXPECT_TRUE(LinkQueue::done(*two));
}

// With room for two packets (2500 B): two.0 waits, one.1 comes at 10 and finds 10 us left (two.0): fits;
// two.1 finds 20 us: full, lost; one.2 at 20 finds 10 us: fits; two.2 is lost, and so on.
TEST(LinkQueue, LosesPacketsNotTrains) {
  LinkQueue link(kGigabit, 2 * kPacket);
  const auto one = train(4, 0, 40);
  const auto two = train(4, 0, 40);
  link.join(one.get());
  link.join(two.get());
  link.serve_until(microseconds(30));
  EXPECT_TRUE(one->lost.none());
  EXPECT_EQ(two->lost.to_string().substr(kMostPackets - 4), "1110");
  EXPECT_EQ(two->leaves, us(10, 20));
  EXPECT_EQ(one->leaves, us(0, 50));
}

// A packet that finds the link idle needs no buffer.
TEST(LinkQueue, WorksWithoutABuffer) {
  LinkQueue link(kGigabit, 0);
  const auto frame = train(4, 0, 40);
  link.serve_until(link.join(frame.get()));
  EXPECT_TRUE(frame->lost.none());
}

// Packets lost before do not come: of 4, the two in the middle; 100 us each for the rest at a tenth of the
// rate.
TEST(LinkQueue, SkipsWhatWasLostBefore) {
  LinkQueue link(kGigabit / 10, kAmple);
  const auto frame = train(4, 0, 40);
  frame->lost.set(1);
  frame->lost.set(2);
  link.serve_until(link.join(frame.get()));
  EXPECT_EQ(frame->leaves, us(0, 200));
}

// At a tenth of the rate the last packet is ready with its first bit at 30 us; made as fast again, at 30 us
// too; ten times faster, not before its last bit but 1 us: 39 us.
TEST(LinkQueue, ReadinessFollowsTheRate) {
  LinkQueue link(kGigabit / 10, kAmple);
  const auto frame = train(4, 0, 40);
  EXPECT_EQ(link.join(frame.get()), microseconds(30));
  link.set(10 * kGigabit, kAmple);
  EXPECT_EQ(link.last_ready(*frame), microseconds(39));
  link.serve_until(microseconds(30));
  EXPECT_FALSE(LinkQueue::done(*frame));
  link.serve_until(microseconds(39));
  EXPECT_EQ(frame->leaves.last, microseconds(40));
}

}  // namespace
}  // namespace commtune::cluster
