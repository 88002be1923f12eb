#include "perfmodel/base/overloaded.h"

#include <gtest/gtest.h>

#include <string>

namespace commtune {
namespace {

using Held = std::variant<int, std::string>;

TEST(Match, CallsTheVisitorOfWhatIsHeld) {
  const auto name = [](const Held& held) {
    return match(
        held, [](const int&) { return "number"; }, [](const std::string&) { return "text"; });
  };
  EXPECT_STREQ(name(1), "number");
  EXPECT_STREQ(name("one"), "text");
}

TEST(Match, LetsAVisitorChangeWhatIsHeld) {
  Held held = 1;
  match(
      held, [](int& number) { ++number; }, [](std::string&) {});
  EXPECT_EQ(std::get<int>(held), 2);
}

}  // namespace
}  // namespace commtune
