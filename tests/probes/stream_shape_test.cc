#include "probes/stream_shape.h"

#include <gtest/gtest.h>

namespace commtune::probes {
namespace {

/// Of messages that take 2 us and so much a byte, on a link of so much latency.
int at_once(Bytes size, double beta, Seconds latency) {
  return streamed_at_once(size, Seconds{2e-6 + beta * static_cast<double>(size.count)}, latency);
}

TEST(StreamedAtOnce, IsManySmallMessagesAndFewLargeOnes) {
  EXPECT_EQ(at_once(Bytes{4}, 1e-9, Seconds{50e-6}), 64);
  EXPECT_EQ(at_once(Bytes{1 << 18}, 1e-9, Seconds{50e-6}), 4);  // 1 MiB
  EXPECT_EQ(at_once(Bytes{64 << 20}, 1e-9, Seconds{50e-6}), 2);
}

TEST(StreamedAtOnce, IsNoMoreThanKeepsASlowLinkBusyForAMoment) {
  // 100 Mb/s, 80 ns a byte: 16 KiB take 1.31 ms, of which 8 ms hold six, where 1 MiB would be 64 of them.
  EXPECT_EQ(at_once(Bytes{16 << 10}, 80e-9, Seconds{200e-6}), 6);
  // Small ones take little more than their start-up.
  EXPECT_EQ(at_once(Bytes{64}, 80e-9, Seconds{200e-6}), 64);
}

TEST(StreamedAtOnce, HidesTheLatencyHoweverLargeTheMessages) {
  // 100 Gb/s, 0.08 ns a byte: 512 KiB take 44 us, and two of 1 ms each way need 46 of them.
  EXPECT_EQ(at_once(Bytes{512 << 10}, 0.08e-9, Seconds{1e-3}), 46);
  // 2 ms at 100 Mb/s: 64 KiB take 5.2 ms, so two suffice.
  EXPECT_EQ(at_once(Bytes{64 << 10}, 80e-9, Seconds{2e-3}), 2);
}

TEST(StreamedInAll, IsLongEnoughForTheStartToBeASmallPart) {
  // 8 ms of 80 us are 100 messages beyond the first 16; those of 100 ms are two windows more, those of 1 ns
  // at most thirty-two.
  EXPECT_EQ(streamed_in_all(16, Seconds{80e-6}), 16 + 100);
  EXPECT_EQ(streamed_in_all(2, Seconds{100e-3}), 2 + 2 * 2);
  EXPECT_EQ(streamed_in_all(64, Seconds{1e-9}), 64 + 32 * 64);
}

TEST(NoLongerThanNeeded, CutsAStreamWhoseMessagesTakeLongerThanGuessed) {
  // Guessed at 60 us: 64 under way, 197 in all. They take 1.3 ms, of which six fill 8 ms.
  const StreamShape cut = no_longer_than_needed({64, 197}, Bytes{32}, Seconds{1.3e-3}, Seconds{2.6e-3});
  EXPECT_EQ(cut.at_once, 6);
  EXPECT_EQ(cut.in_all, 6 + 2 * 6);
  // So many hide the latency of a message that takes much longer alone.
  EXPECT_EQ(no_longer_than_needed({64, 197}, Bytes{32}, Seconds{1.3e-3}, Seconds{13e-3}).at_once, 20);
}

TEST(NoLongerThanNeeded, LeavesAStreamOfFastMessagesAsItWasPlanned) {
  // Twice as fast as guessed: no more of them, for so much traffic was not asked for.
  const StreamShape planned{64, 197};
  const StreamShape kept = no_longer_than_needed(planned, Bytes{32}, Seconds{30e-6}, Seconds{200e-6});
  EXPECT_EQ(kept.at_once, planned.at_once);
  EXPECT_EQ(kept.in_all, planned.in_all);
}

}  // namespace
}  // namespace commtune::probes
