#include "api/output/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "api/text.h"

namespace commtune::api {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class ProgressTest : public testing::Test {
 protected:
  ProgressOptions options(bool terminal) {
    ProgressOptions made;
    made.terminal = terminal;
    made.columns = 60;
    made.now = [this] { return now_; };
    return made;
  }
  auto write() {
    return [this](std::string_view text) { written_ += text; };
  }

  std::chrono::steady_clock::time_point now_{};
  std::string written_;
};

TEST_F(ProgressTest, NothingIsShownForTwoSeconds) {
  Progress progress(options(true), write());
  progress.show("x", 0.1);
  now_ += milliseconds(1999);
  progress.show("x", 0.2);
  EXPECT_EQ(written_, "");
  now_ += milliseconds(1);
  progress.show("x", 0.5, Seconds{61});
  EXPECT_EQ(written_, "\r\x1b[K[############............]  50 % 1:01 left  x");
}

TEST_F(ProgressTest, ATerminalsLineIsRedrawnWithinItsWidthAndTakenAway) {
  {
    Progress progress(options(true), write());
    now_ += milliseconds(3000);
    progress.show(std::string(200, 'w'), 1.0);
    EXPECT_EQ(columns(written_), 59U + 4U);  // the line, and "\r\x1b[K"
    progress.show("too soon", 1.0);
    EXPECT_EQ(columns(written_), 59U + 4U);
  }
  EXPECT_TRUE(written_.ends_with("\r\x1b[K"));
}

TEST_F(ProgressTest, ElsewhereWholeLinesComeNowAndThen) {
  Progress progress(options(false), write());
  now_ += milliseconds(2000);
  progress.show("links", 0.25, Seconds{9});
  progress.show("links", 0.26, Seconds{9});
  EXPECT_EQ(written_, " 25 % 0:09 left  links\n");
  now_ += milliseconds(10'000);
  progress.show("roads", 0.75);
  EXPECT_EQ(written_, " 25 % 0:09 left  links\n 75 %  roads\n");
}

TEST_F(ProgressTest, DisabledItIsSilent) {
  ProgressOptions off = options(true);
  off.enabled = false;
  Progress progress(off, write());
  now_ += milliseconds(5000);
  progress.show("x", 0.5);
  EXPECT_EQ(written_, "");
}

}  // namespace
}  // namespace commtune::api
