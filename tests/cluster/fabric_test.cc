#include "tests/cluster/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/cluster/control.h"

namespace commtune::cluster {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::int64_t kGigabit = 125'000'000;

/// A fabric and what it delivered, each with the moment of its event.
class FabricTest : public testing::Test {
 protected:
  struct Delivery {
    std::size_t port;
    std::size_t bytes;
    Time time;
    bool operator==(const Delivery&) const = default;
  };

  /// One group of `hosts` at 1 Gb/s with 200 us between any two.
  void one_group(std::size_t hosts) {
    fabric.add_group({});
    for (std::size_t i = 0; i < hosts; ++i) fabric.add_port({kGigabit, kGigabit, microseconds(200)}, 0);
  }

  /// A frame of 1226 B, which takes 1250 B on the wire: 10 us at 1 Gb/s.
  void send(std::size_t from, std::size_t to, Time moment) {
    Frame* frame = fabric.take_frame();
    ASSERT_NE(frame, nullptr);
    frame->length = kVnetHeaderBytes + 1226;
    std::fill_n(frame->data.begin(), frame->length, std::byte{0});
    const auto mac = mac_address(to);
    std::transform(mac.begin(), mac.end(), frame->data.begin() + kVnetHeaderBytes,
                   [](auto b) { return std::byte{b}; });
    fabric.send(from, frame, moment);
  }

  /// Runs until nothing is in flight.
  std::vector<Delivery> run() {
    deliveries.clear();
    while (const auto next = fabric.next_event()) {
      now = *next;
      fabric.advance(now);
    }
    return deliveries;
  }

  Time now{};
  std::vector<Delivery> deliveries;
  Fabric fabric{[this](std::size_t port, std::span<const std::byte> frame) {
    deliveries.push_back({port, frame.size(), now});
  }};
};

// 10 us on the wire and 200 us of delay
TEST_F(FabricTest, TakesDelayAndOneSerialisation) {
  one_group(2);
  send(0, 1, microseconds(5));
  EXPECT_EQ(run(), (std::vector<Delivery>{{1, 1236, microseconds(215)}}));
}

// The downlink may begin with the frame after 100 us, but nobody need look until it could be at the host.
TEST_F(FabricTest, AsksForTheTimeOfADeliveryOnly) {
  one_group(2);
  send(0, 1, Time{0});
  EXPECT_EQ(fabric.next_event(), Time{microseconds(200)});
  fabric.advance(microseconds(150));
  EXPECT_TRUE(deliveries.empty());
  EXPECT_EQ(fabric.next_event(), Time{microseconds(210)});
  // A late look changes nothing of what the links do: a second frame leaves the downlink 10 us after it.
  send(0, 1, microseconds(1));
  fabric.advance(microseconds(215));
  EXPECT_EQ(fabric.next_event(), Time{microseconds(220)});
}

// A host with a shorter delay, or a control command that makes one, is served sooner after its downlink.
TEST_F(FabricTest, LooksInTimeForTheShortestDelay) {
  one_group(2);
  handle_request("set 2 delay=0", fabric);
  send(0, 1, Time{0});
  EXPECT_EQ(run().at(0).time, microseconds(110));
}

// Three frames of one host follow each other at its uplink's pace.
TEST_F(FabricTest, SerialisesAtTheUplink) {
  one_group(2);
  for (int i = 0; i < 3; ++i) send(0, 1, Time{0});
  const auto got = run();
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].time, microseconds(210));
  EXPECT_EQ(got[2].time, microseconds(230));
}

// Three hosts send to one at the same moment: the last frame waits for two others.
TEST_F(FabricTest, QueuesIncastAtTheDownlink) {
  one_group(4);
  for (std::size_t from = 1; from < 4; ++from) send(from, 0, Time{0});
  const auto got = run();
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].time, microseconds(210));
  EXPECT_EQ(got[2].time, microseconds(230));
}

// Delay: half of each end's. 1 ms and 200 us make 600 us; the slower downlink (200 Mb/s) takes 50 us.
TEST_F(FabricTest, UsesBothEndsSettings) {
  one_group(1);
  fabric.add_port({kGigabit, kGigabit / 5, milliseconds(1)}, 0);
  send(0, 1, Time{0});
  EXPECT_EQ(run().at(0).time, microseconds(650));
}

// Two hosts of one group send to two of the other through a trunk of 200 Mb/s with 1 ms: 50 us each on the
// trunk, one after the other; the rest is cut-through, but for the last 10 us downlink, which is hidden
// behind the trunk.
TEST_F(FabricTest, SharesTheTrunk) {
  const TrunkSettings trunk{kGigabit / 5, milliseconds(1)};
  fabric.add_group(trunk);
  fabric.add_group(trunk);
  for (std::size_t i = 0; i < 4; ++i) fabric.add_port({kGigabit, kGigabit, microseconds(200)}, i / 2);
  send(0, 2, Time{0});
  send(1, 3, Time{0});
  send(0, 1, microseconds(100));  // inside a group: not over the trunk
  const auto got = run();
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0], (Delivery{1, 1236, microseconds(310)}));
  EXPECT_EQ(got[1], (Delivery{2, 1236, microseconds(1250)}));
  EXPECT_EQ(got[2], (Delivery{3, 1236, microseconds(1300)}));
}

TEST_F(FabricTest, DropsWhatDoesNotFitBeforeTheDownlink) {
  fabric.add_group({});
  for (int i = 0; i < 4; ++i) fabric.add_port({kGigabit, kGigabit, Time{0}, 1250}, 0);
  for (std::size_t from = 1; from < 4; ++from) send(from, 0, Time{0});
  EXPECT_EQ(run().size(), 1U);
  EXPECT_EQ(fabric.counters(0).dropped_packets, 2U);
  EXPECT_EQ(fabric.counters(0).received_frames, 1U);
}

TEST_F(FabricTest, CutLinkPassesNothing) {
  one_group(3);
  handle_request("cut 2", fabric);
  send(0, 1, Time{0});
  send(1, 0, Time{0});
  send(0, 2, Time{0});
  const auto got = run();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].port, 2U);
  EXPECT_EQ(fabric.counters(1).cut_frames, 2U);
  handle_request("restore 2", fabric);
  send(0, 1, milliseconds(1));
  EXPECT_EQ(run().size(), 1U);
}

TEST_F(FabricTest, IgnoresFramesToNobody) {
  one_group(2);
  send(0, 7, Time{0});  // no such host
  send(0, 0, Time{0});  // itself
  EXPECT_TRUE(run().empty());
  EXPECT_EQ(fabric.counters(0).strange_frames, 2U);
}

// 250 frames of 10 us make 2.5 ms of work: more than kUplinkHorizon; it may be read again with half of it
// left.
TEST_F(FabricTest, HoldsAHostWhoseUplinkIsBusy) {
  one_group(2);
  EXPECT_FALSE(fabric.wait_to_read(0, Time{0}));
  for (int i = 0; i < 250; ++i) send(0, 1, Time{0});
  EXPECT_EQ(fabric.wait_to_read(0, Time{0}), microseconds(1500));
  EXPECT_FALSE(fabric.wait_to_read(0, microseconds(1500)));
  EXPECT_FALSE(fabric.wait_to_read(1, Time{0}));
}

TEST_F(FabricTest, GivesBuffersBack) {
  one_group(2);
  for (int round = 0; round < 20'000; ++round) {  // more than there are buffers
    send(0, 1, milliseconds(round));
    ASSERT_EQ(run().size(), 1U);
  }
}

TEST_F(FabricTest, TellsHowLateItWas) {
  one_group(2);
  send(0, 1, Time{0});
  fabric.advance(microseconds(300));
  EXPECT_EQ(fabric.lateness().frames, 1U);
  EXPECT_EQ(fabric.lateness().worst, microseconds(90));
  EXPECT_EQ(fabric.lateness().over_50us, 1U);
}

// The link becomes ten times slower while frames are under way: the next one takes 100 us at each end.
TEST_F(FabricTest, ChangesWhileItRuns) {
  one_group(2);
  handle_request("set 1 up=12500000", fabric);
  send(0, 1, Time{0});
  EXPECT_EQ(run().at(0).time, microseconds(300));
}

}  // namespace
}  // namespace commtune::cluster
