#include "probes/sampling/target_state.h"

#include <gtest/gtest.h>

#include <array>

namespace commtune::probes {
namespace {

/// Streams whose messages take 4.5 ms, where links of 15 us made believe that it would be hundreds of times
/// less.
TargetState far_dearer_than_guessed() {
  TargetState state;
  state.target.quantity.in_flight = kStreaming;
  state.target.startup = Seconds{15e-6};
  state.target.beta = SecondsPerByte{1e-10};
  state.record(Bytes{16}, 64, std::array{4.5e-3, 4.6e-3}, Seconds{1});
  return state;
}

TEST(TargetState, TheSmallestSizeTakesWhatItTook) {
  const TargetState state = far_dearer_than_guessed();
  EXPECT_NEAR(state.message_time(Bytes{16}), 4.55e-3, 1e-4);
  // The guess would have it send 1,300 messages more: six seconds.
  EXPECT_LE(state.stream_messages(Bytes{16}), 64 + 64 + 128);
  EXPECT_GT(state.repetition_time(Bytes{16}, Seconds{0}), 1);
}

TEST(TargetState, SmallerSizesTakeNoMoreThanIsKnownOrGuessed) {
  const TargetState state = far_dearer_than_guessed();
  EXPECT_LE(state.message_time(Bytes{4}), 15.1e-6);
}

TEST(TargetState, AStreamThatHidTooLittleIsMeasuredAgainWithMoreUnderWay) {
  TargetState state;
  state.target.quantity.subject = Subject::kOperation;
  state.target.quantity.in_flight = kStreaming;
  state.target.latency = Seconds{1.6e-3};
  state.target.startup = Seconds{100e-6};
  const SizeTimes few = state.record(Bytes{16}, 16, std::array{101e-6, 102e-6}, Seconds{1});
  EXPECT_EQ(few.repetitions(), 2);  // kept, but no fit's
  EXPECT_TRUE(state.points.empty());
  EXPECT_EQ(state.at_once(Bytes{16}), 64);
  state.record(Bytes{16}, 64, std::array{61e-6, 62e-6}, Seconds{1});
  EXPECT_EQ(state.points.at(Bytes{16}).at_once, 64);
  EXPECT_EQ(state.at_once(Bytes{16}), 64);
  // A link's messages do not wait for each other.
  state.target.quantity.subject = Subject::kMessage;
  state.record(Bytes{4}, 16, std::array{2e-6, 3e-6}, Seconds{1});
  EXPECT_TRUE(state.points.contains(Bytes{4}));
}

}  // namespace
}  // namespace commtune::probes
