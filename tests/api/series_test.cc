#include "api/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/perfmodel/throws.h"

namespace commtune::api {
namespace {

using testing::ElementsAre;

TEST(CountSeries, IsOneSeveralOrARangeThatDoubles) {
  EXPECT_THAT(count_series("8"), ElementsAre(8));
  EXPECT_THAT(count_series("1,2,6"), ElementsAre(1, 2, 6));
  EXPECT_THAT(count_series("4..32"), ElementsAre(4, 8, 16, 32));
  EXPECT_THAT(count_series("0..6"), ElementsAre(0, 1, 2, 4, 6));
  EXPECT_EQ(count_series("1..2048").size(), 12U);
}

TEST(CountSeries, RefusesWhatIsNone) {
  for (const char* text : {"", "x", "1,", ",1", "1..", "..4", "8..4", "-1", "1.5", "2 ", "10000000"})
    EXPECT_THROW(count_series(text), Error) << text;
}

TEST(RateSeries, DoublesTheRate) {
  const auto rates = rate_series("1Gbit..4Gbit");  // 1.25e8 B/s and its doublings
  ASSERT_EQ(rates.size(), 3U);
  EXPECT_NEAR(rates[0].value, 8e-9, 1e-15);
  EXPECT_NEAR(rates[1].value, 4e-9, 1e-15);
  EXPECT_NEAR(rates[2].value, 2e-9, 1e-15);
  EXPECT_THROW(rate_series("1..4"), Error);
}

TEST(DurationSeries, DoublesTheTime) {
  const auto times = duration_series("5us..20us");
  ASSERT_EQ(times.size(), 3U);
  EXPECT_NEAR(times[2].count(), 20e-6, 1e-12);
  EXPECT_THROW(duration_series("0us..1us"), Error);  // doubling nothing never arrives
}

}  // namespace
}  // namespace commtune::api
