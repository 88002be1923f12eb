#include "perfmodel/base/units.h"

#include <gmock/gmock.h>

#include "tests/perfmodel/throws.h"

namespace commtune {
namespace {

using testing::HasSubstr;

TEST(ParseRate, ReadsBitsAndBytesInPowersOfTen) {
  EXPECT_DOUBLE_EQ(parse_rate("1Gbit").value, 1 / 1.25e8);      // 10^9 / 8 bytes a second
  EXPECT_DOUBLE_EQ(parse_rate("100Gb/s").value, 1 / 1.25e10);   //
  EXPECT_DOUBLE_EQ(parse_rate("200Mbit").value, 1 / 2.5e7);     //
  EXPECT_DOUBLE_EQ(parse_rate("200mbit").value, 1 / 2.5e7);     // as tc writes it
  EXPECT_DOUBLE_EQ(parse_rate("12.5GB/s").value, 1 / 1.25e10);  //
  EXPECT_DOUBLE_EQ(parse_rate(" 10 Gbit/s ").value, 1 / 1.25e9);
  EXPECT_DOUBLE_EQ(parse_rate("1GiB/s").value, 1 / 1073741824.0);
  EXPECT_DOUBLE_EQ(parse_rate("8bit").value, 1);
}

TEST(ParseRate, TellsBitsFromBytes) {
  EXPECT_DOUBLE_EQ(parse_rate("1Gb/s").value, 8 * parse_rate("1GB/s").value);
}

TEST(ParseRate, RefusesWithTheTextAndTheRule) {
  EXPECT_THAT(bad_input([] { parse_rate("10"); }), HasSubstr("rate \"10\": no unit"));
  EXPECT_THAT(bad_input([] { parse_rate("10G"); }), HasSubstr("unknown unit \"G\""));
  EXPECT_THAT(bad_input([] { parse_rate("10mb/s"); }), HasSubstr("unknown unit"));  // mega or milli?
  EXPECT_THAT(bad_input([] { parse_rate("0Gbit"); }), HasSubstr("at least 1 bit/s"));
  EXPECT_THAT(bad_input([] { parse_rate("-1Gbit"); }), HasSubstr("not negative"));
  for (const char* text : {"", " ", "Gbit", "nanGbit", "infGbit", "1e9Gbit", "1..2Gbit", "0x1Gbit", "1,5Gbit",
                           "99999999999999999999999999999Tbit"}) {
    bad_input([&] { parse_rate(text); });
  }
}

TEST(ParseSize, ReadsPowersOfTwo) {
  EXPECT_EQ(parse_size("8"), 8_B);
  EXPECT_EQ(parse_size("0"), 0_B);
  EXPECT_EQ(parse_size("4K"), 4_KiB);
  EXPECT_EQ(parse_size("4KiB"), 4_KiB);
  EXPECT_EQ(parse_size("25M"), 25_MiB);
  EXPECT_EQ(parse_size("25MiB"), 25_MiB);
  EXPECT_EQ(parse_size("1G"), 1024_MiB);
  EXPECT_EQ(parse_size("1000B"), 1000_B);
  EXPECT_EQ(parse_size("1.5M"), 1536_KiB);
  EXPECT_EQ(parse_size("8388607T").count, std::uint64_t{8388607} << 40);
}

TEST(ParseSize, RefusesWithTheTextAndTheRule) {
  EXPECT_THAT(bad_input([] { parse_size("25MB"); }), HasSubstr("unknown unit \"MB\""));
  EXPECT_THAT(bad_input([] { parse_size("0.3K"); }), HasSubstr("whole number of bytes"));  // 307.2 B
  EXPECT_THAT(bad_input([] { parse_size("8388608T"); }), HasSubstr("less than 8 EiB"));    // 2^63
  EXPECT_THAT(bad_input([] { parse_size("99999999999999999999"); }), HasSubstr("less than 8 EiB"));
  for (const char* text : {"", "K", "-1", "+1", "1 2", "1e3", "nan", ".", "4k", "0x10"}) {
    bad_input([&] { parse_size(text); });
  }
}

TEST(ParseDuration, ReadsUnits) {
  EXPECT_DOUBLE_EQ(parse_duration("200us").count(), 200e-6);
  EXPECT_DOUBLE_EQ(parse_duration("200µs").count(), 200e-6);
  EXPECT_DOUBLE_EQ(parse_duration("1.5ms").count(), 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_duration("10s").count(), 10);
  EXPECT_DOUBLE_EQ(parse_duration("2min").count(), 120);
  EXPECT_DOUBLE_EQ(parse_duration("30d").count(), 30 * 86400);
  EXPECT_DOUBLE_EQ(parse_duration("0s").count(), 0);
}

TEST(ParseDuration, RefusesWithTheTextAndTheRule) {
  EXPECT_THAT(bad_input([] { parse_duration("10"); }), HasSubstr("duration \"10\": no unit"));
  EXPECT_THAT(bad_input([] { parse_duration("10m"); }), HasSubstr("unknown unit \"m\""));  // metres? minutes?
  EXPECT_THAT(bad_input([] { parse_duration("1000000000s"); }), HasSubstr("at most 10^8 s"));
  bad_input([] { parse_duration("-1s"); });
  bad_input([] { parse_duration("\n1s"); });
}

TEST(Parsing, QuotesHostileTextOnOneShortLine) {
  std::string hostile(100000, 'x');
  hostile += "\n\x1b[31m";
  const std::string text = bad_input([&] { parse_size(hostile); });
  EXPECT_LT(text.size(), 300U);
  const std::string escape = bad_input([] { parse_size("5\x1b[31m\n"); });
  EXPECT_EQ(escape.find('\x1b'), std::string::npos);
  EXPECT_EQ(escape.find('\n'), std::string::npos);
}

TEST(FormatSize, ChoosesTheUnit) {
  EXPECT_EQ(format_size(0_B), "0 B");
  EXPECT_EQ(format_size(512_B), "512 B");
  EXPECT_EQ(format_size(1023_B), "1023 B");
  EXPECT_EQ(format_size(1536_B), "1.5 KiB");
  EXPECT_EQ(format_size(96_MiB), "96.0 MiB");
  EXPECT_EQ(format_size(1024_KiB - 1_B), "1.0 MiB");  // 1023.999 KiB is not "1024.0 KiB"
  EXPECT_EQ(format_size(Bytes{UINT64_MAX}), "16.0 EiB");
}

TEST(FormatTime, GivesThreeDigits) {
  EXPECT_EQ(format_time(Seconds{311e-6}), "311 µs");
  EXPECT_EQ(format_time(Seconds{68.7e-3}), "68.7 ms");
  EXPECT_EQ(format_time(Seconds{1.24}), "1.24 s");
  EXPECT_EQ(format_time(Seconds{0}), "0 s");
  EXPECT_EQ(format_time(Seconds{999.7e-6}), "1.00 ms");
  EXPECT_EQ(format_time(Seconds{-2.5e-3}), "-2.50 ms");
  EXPECT_EQ(format_time(Seconds{7.85e-9}), "7.85 ns");
  EXPECT_EQ(format_time(Seconds{0.314e-9}), "0.31 ns");
  EXPECT_EQ(format_time(Seconds{0.9951e-9}), "1.00 ns");
  EXPECT_EQ(format_time(Seconds{-0.05e-9}), "-0.05 ns");
  EXPECT_EQ(format_time(Seconds{4.9e-12}), "0 s");  // a fit's rounding
  EXPECT_EQ(format_time(Seconds{-3.2e-22}), "0 s");
  EXPECT_EQ(format_time(Seconds{1e300 * 1e10}), "inf s");
}

TEST(FormatBandwidth, CountsInPowersOfTen) {
  EXPECT_EQ(format_bandwidth(SecondsPerByte{1 / 0.118e9}), "0.118 GB/s");
  EXPECT_EQ(format_bandwidth(SecondsPerByte{1 / 12.5e9}), "12.5 GB/s");
  EXPECT_EQ(format_bandwidth(SecondsPerByte{0}), "infinite");
  EXPECT_EQ(format_bandwidth(parse_rate("1Mbit")), "0.000125 GB/s");
}

}  // namespace
}  // namespace commtune
