#include "api/wire/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace commtune::api {
namespace {

template <class Kind>
Kind round_trip(const Kind& report) {
  const auto back = report_from_line(to_line(report));
  EXPECT_TRUE(back.has_value());
  return std::get<Kind>(back.value());
}

TEST(Reports, SurviveTheWire) {
  EXPECT_EQ(round_trip(Started{"0.1.0", {"h1", "h2"}}).hosts.size(), 2U);
  const Progressed progress = round_trip(Progressed{"all-reduce, 1.0 MiB", 0.25, Seconds{3.5}});
  EXPECT_EQ(progress.what, "all-reduce, 1.0 MiB");
  EXPECT_DOUBLE_EQ(progress.fraction, 0.25);
  EXPECT_DOUBLE_EQ(progress.left.value().count(), 3.5);
  EXPECT_FALSE(round_trip(Progressed{"x", 0, {}}).left.has_value());
  EXPECT_EQ(round_trip(Found{"sample", {{"a", 1}}}).value.at("a"), 1);
  EXPECT_EQ(round_trip(Finished{{{"b", 2}}}).result.at("b"), 2);
  const Failed failed = round_trip(Failed{ErrorCode::kPeerLost, "rank 2 on \"h3\"\nis gone"});
  EXPECT_EQ(failed.code, ErrorCode::kPeerLost);
  EXPECT_EQ(failed.message, "rank 2 on \"h3\"\nis gone");
}

TEST(Reports, AreOneLineEach) {
  EXPECT_EQ(to_line(Failed{ErrorCode::kTimeout, "a\nb"}).find('\n'), std::string::npos);
}

TEST(Reports, OtherLinesAreChatter) {
  EXPECT_FALSE(report_from_line("").has_value());
  EXPECT_FALSE(report_from_line("libibverbs: Warning").has_value());
  EXPECT_FALSE(report_from_line("{\"other\": 1}").has_value());
}

TEST(Reports, AMalformedOneIsRefused) {
  EXPECT_THROW(report_from_line("{\"report\":\"finished\""), Error);
  EXPECT_THROW(report_from_line("{\"report\":\"later kind\"}"), Error);
  EXPECT_THROW(
      report_from_line(R"({"report":"started","format":"commtune/report/2","version":"","hosts":["a"]})"),
      Error);
}

}  // namespace
}  // namespace commtune::api
