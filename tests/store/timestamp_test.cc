#include "store/timestamp.h"

#include "tests/store/support.h"

namespace commtune {
namespace {

TEST(Timestamp, IsWrittenAsUtcToTheMillisecond) {
  // 2026-11-21 is 20778 days after 1970-01-01.
  using namespace std::chrono_literals;
  const Timestamp time = Timestamp{} + std::chrono::days(20778) + 2h + 26min + 56s + 7ms;
  EXPECT_EQ(to_iso8601(time), "2026-11-21T02:26:56.007Z");
  EXPECT_EQ(timestamp_from_iso8601("2026-11-21T02:26:56.007Z"), time);
}

TEST(Timestamp, MayLackTheFraction) {
  EXPECT_EQ(timestamp_from_iso8601("1970-01-01T00:00:01Z"), Timestamp{} + std::chrono::seconds(1));
}

TEST(Timestamp, BeforeTheEpochIsReadBackEqual) {
  const Timestamp time = Timestamp{} - std::chrono::milliseconds(1);
  EXPECT_EQ(to_iso8601(time), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(timestamp_from_iso8601(to_iso8601(time)), time);
}

TEST(Timestamp, TextOrderIsTimeOrder) {
  const Timestamp early = tests::noon();
  const Timestamp late = early + std::chrono::milliseconds(1);
  EXPECT_LT(to_iso8601(early), to_iso8601(late));
}

TEST(Timestamp, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "yesterday", "2026-11-21", "2026-11-21T02:26:56", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z",
        "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00,000Z",
        "2026-01-01T00:00:00.0x0Z", "-026-01-01T00:00:00Z"}) {
    EXPECT_THAT(tests::error_of([&] { timestamp_from_iso8601(text); }),
                tests::IsError(ErrorCode::kBadInput, "2026-11-21T02:26:56.123Z"))
        << text;
  }
}

}  // namespace
}  // namespace commtune
