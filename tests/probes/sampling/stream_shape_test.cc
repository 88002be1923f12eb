#include "probes/sampling/stream_shape.h"

#include <gtest/gtest.h>

#include "probes/moments.h"

namespace commtune::probes {
namespace {

/// Of messages that take 2 us and so much a byte, on a link of so much latency.
int at_once(Bytes size, double beta, Seconds latency) {
  return streamed_at_once(size, Seconds{2e-6 + beta * static_cast<double>(size.count)}, latency);
}

TEST(StreamedAtOnce, IsManySmallMessagesAndFewLargeOnes) {
  EXPECT_EQ(at_once(Bytes{4}, 1e-9, Seconds{50e-6}), 64);
  EXPECT_EQ(at_once(Bytes{1 << 18}, 1e-9, Seconds{50e-6}), 4);  // 1 MiB
  EXPECT_EQ(at_once(Bytes{64 << 20}, 1e-9, Seconds{50e-6}), 3);
}

TEST(StreamedAtOnce, IsNoMoreThanKeepsASlowLinkBusyForAMoment) {
  // 100 Mb/s, 80 ns a byte: 16 KiB take 1.31 ms, of which 16 ms hold twelve, where 1 MiB would be 64 of them.
  EXPECT_EQ(at_once(Bytes{16 << 10}, 80e-9, Seconds{200e-6}), 12);
  // Small ones take little more than their start-up.
  EXPECT_EQ(at_once(Bytes{64}, 80e-9, Seconds{200e-6}), 64);
}

TEST(StreamedAtOnce, HidesTheLatencyHoweverLargeTheMessages) {
  // 100 Gb/s, 0.08 ns a byte: 512 KiB take 44 us; four times the latency holds 46 of them.
  EXPECT_EQ(at_once(Bytes{512 << 10}, 0.08e-9, Seconds{0.5e-3}), 48);
  // 5 ms at 100 Mb/s: 16 KiB take 1.3 ms. 2 ms: 256 KiB take 21, so the fewest suffice.
  EXPECT_EQ(at_once(Bytes{16 << 10}, 80e-9, Seconds{5e-3}), 18);
  EXPECT_EQ(at_once(Bytes{256 << 10}, 80e-9, Seconds{2e-3}), 3);
}

TEST(StreamedAtOnce, KeepsEveryServerInTurnBusy) {
  EXPECT_EQ(streamed_at_once(Bytes{64 << 20}, Seconds{60e-3}, Seconds{50e-6}, {.servers = 8}), 16);
  EXPECT_EQ(streamed_at_once(Bytes{4}, Seconds{2e-6}, Seconds{50e-6}, {.servers = 8}), 64);
}

TEST(StreamedAtOnce, IsNoMoreOperationsThanHideTheirLatency) {
  // Ranks that share processors: 100 us each, 0.3 ms alone. Sixteen hide that four times over.
  EXPECT_EQ(streamed_at_once(Bytes{4}, Seconds{100e-6}, Seconds{0.3e-3}, kStreamedOperations), 16);
  // 17 ms alone would need 682.
  EXPECT_EQ(streamed_at_once(Bytes{4}, Seconds{100e-6}, Seconds{17e-3}, kStreamedOperations), 256);
  EXPECT_EQ(streamed_at_once(Bytes{4}, Seconds{100e-6}, Seconds{5e-3}, kStreamedOperations), 202);
}

/// Of operations of 4 bytes, of which sixteen are under way however little each takes.
std::optional<int> deeper(int at_once, Seconds each, Seconds latency) {
  return streamed_deeper(Bytes{4}, at_once, each, latency, kStreamedOperations);
}

TEST(StreamedDeeper, IsAskedForWhereTheLatencyWasAllThatWasSeen) {
  // 16 of them in little more than 1.2 ms: one may take 80 us, or 2.
  EXPECT_EQ(deeper(16, Seconds{80e-6}, Seconds{1.2e-3}), 64);
  // Of those that hide it as many as hide it four times.
  EXPECT_EQ(deeper(16, Seconds{130e-6}, Seconds{1.2e-3}), 39);
  EXPECT_EQ(deeper(39, Seconds{130e-6}, Seconds{1.2e-3}), std::nullopt);
  // Three large ones, of which two are hardly on their way at once.
  EXPECT_EQ(streamed_deeper(1_MiB, 3, Seconds{2.8e-3}, Seconds{4.8e-3}, kStreamedOperations), 12);
  // No more than are allowed.
  EXPECT_EQ(deeper(256, Seconds{10e-6}, Seconds{3e-3}), std::nullopt);
}

TEST(StreamedDeeper, IsAskedForWhereOneTookLessThanWasThought) {
  // 4 ms were thought, so that three were under way; of 1.8 ms it would have been eight.
  EXPECT_EQ(streamed_deeper(4_KiB, 3, Seconds{1.8e-3}, Seconds{1e-3}, kStreamedOperations), 8);
  // Of 1.1 ms fourteen: not twice as many.
  EXPECT_EQ(streamed_deeper(4_KiB, 8, Seconds{1.1e-3}, Seconds{1e-3}, kStreamedOperations), std::nullopt);
}

TEST(StreamedInAll, IsLongEnoughForTheStartToBeASmallPart) {
  // 20 ms of just below 80 us are 250 messages beyond the first 16; those of 100 ms are two windows more,
  // those of 1 ns at most thirty-two.
  EXPECT_EQ(streamed_in_all(16, Seconds{79.9e-6}), 16 + 250);
  EXPECT_EQ(streamed_in_all(2, Seconds{100e-3}), 2 + 2 * 2);
  EXPECT_EQ(streamed_in_all(64, Seconds{1e-9}), 64 + 32 * 64);
  // No stream has more moments than a report.
  EXPECT_EQ(streamed_in_all(256, Seconds{1e-9}), 256 + 2048);
  EXPECT_LE(256 + 2048, kMostEnds);
}

TEST(StreamedAtMost, IsShorterOnlyWhereTheGuessWasFarOff) {
  // 1,397 messages were to take 20 ms; seen at 9 ms each, a second holds 111, and three windows of 64 are the
  // fewest.
  EXPECT_EQ(streamed_at_most(64 + 1333, 64, Seconds{9e-3}), 192);
  EXPECT_EQ(streamed_at_most(16 + 500, 16, Seconds{9e-3}), 111);
  // Five times the guess: 0.1 s.
  EXPECT_EQ(streamed_at_most(64 + 250, 64, Seconds{400e-6}), 314);
  EXPECT_EQ(streamed_at_most(6, 2, Seconds{10}), 6);
}

TEST(RowAtMost, IsShorterOnlyWhereTheGuessWasFarOff) {
  EXPECT_EQ(row_at_most(30, Seconds{1e-3}), 30);
  EXPECT_EQ(row_at_most(30, Seconds{0.1}), 10);
  EXPECT_EQ(row_at_most(30, Seconds{10}), 1);
}

}  // namespace
}  // namespace commtune::probes
