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
  // 100 Mb/s, 80 ns a byte: 16 KiB take 1.31 ms, of which 8 ms hold six, where 1 MiB would be 64 of them.
  EXPECT_EQ(at_once(Bytes{16 << 10}, 80e-9, Seconds{200e-6}), 6);
  // Small ones take little more than their start-up.
  EXPECT_EQ(at_once(Bytes{64}, 80e-9, Seconds{200e-6}), 64);
}

TEST(StreamedAtOnce, HidesTheLatencyHoweverLargeTheMessages) {
  // 100 Gb/s, 0.08 ns a byte: 512 KiB take 44 us, and 1.044 ms alone; twice that holds 48 of them.
  EXPECT_EQ(at_once(Bytes{512 << 10}, 0.08e-9, Seconds{1e-3}), 48);
  // 2 ms at 100 Mb/s: 64 KiB take 5.2 ms, so the fewest suffice, and 16 KiB 1.3.
  EXPECT_EQ(at_once(Bytes{16 << 10}, 80e-9, Seconds{2e-3}), 6);
  EXPECT_EQ(at_once(Bytes{64 << 10}, 80e-9, Seconds{2e-3}), 3);
}

TEST(StreamedAtOnce, KeepsEveryServerInTurnBusy) {
  EXPECT_EQ(streamed_at_once(Bytes{64 << 20}, Seconds{60e-3}, Seconds{50e-6}, {.servers = 8}), 16);
  EXPECT_EQ(streamed_at_once(Bytes{4}, Seconds{2e-6}, Seconds{50e-6}, {.servers = 8}), 64);
}

TEST(StreamedAtOnce, IsNoMoreOperationsThanHideTheirLatency) {
  // Ranks that share processors: 100 us each, 0.5 ms alone. Sixteen hide that three times over.
  EXPECT_EQ(streamed_at_once(Bytes{4}, Seconds{100e-6}, Seconds{0.5e-3}, kStreamedOperations), 16);
  // 17 ms alone would need 340.
  EXPECT_EQ(streamed_at_once(Bytes{4}, Seconds{100e-6}, Seconds{17e-3}, kStreamedOperations), 256);
  EXPECT_EQ(streamed_at_once(Bytes{4}, Seconds{100e-6}, Seconds{5e-3}, kStreamedOperations), 102);
}

TEST(StreamedDeeper, IsAskedForWhereTheLatencyWasAllThatWasSeen) {
  // 16 of them in little more than 1.2 ms: one may take 80 us, or 2.
  EXPECT_EQ(streamed_deeper(16, Seconds{80e-6}, Seconds{1.2e-3}, kStreamedOperations), 64);
  EXPECT_EQ(streamed_deeper(16, Seconds{130e-6}, Seconds{1.2e-3}, kStreamedOperations), std::nullopt);
  // Three large ones, of which two are hardly on their way at once.
  EXPECT_EQ(streamed_deeper(3, Seconds{2.8e-3}, Seconds{4.8e-3}, kStreamedOperations), 12);
  // No more than are allowed.
  EXPECT_EQ(streamed_deeper(128, Seconds{10e-6}, Seconds{1.2e-3}, kStreamedOperations), std::nullopt);
  EXPECT_EQ(streamed_deeper(16, Seconds{80e-6}, Seconds{1.2e-3}, {}), 64);
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
