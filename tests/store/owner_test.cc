#include "store/owner.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/store/processes.h"

namespace commtune {
namespace {

std::string replaced(std::string text, const std::string& word, const std::string& value) {
  const std::size_t at = text.find(word) + word.size();
  return text.replace(at, text.find(' ', at) - at, value);
}

TEST(Owner, IsHereAsLongAsItsProcessIs) {
  EXPECT_FALSE(is_gone(this_process()));
  std::string name;
  {
    const tests::ChildProcess child([](int pipe) {
      const std::string own = this_process();
      [[maybe_unused]] const auto written = ::write(pipe, own.data(), own.size());
      ::close(pipe);
      ::pause();
    });
    name = child.read_text();
    EXPECT_FALSE(is_gone(name)) << name;
  }
  EXPECT_TRUE(is_gone(name)) << name;
}

TEST(Owner, IsNotWhoeverHasItsNumberNow) {
  EXPECT_TRUE(is_gone(replaced(this_process(), " started ", "1")));
  EXPECT_TRUE(is_gone(replaced(this_process() + " ", " boot ", "00000000").substr(0, this_process().size())));
}

TEST(Owner, OfAnotherMachineOrInOtherWordsIsLeftAlone) {
  EXPECT_FALSE(is_gone("far.away pid 1 started 5 boot 0a1b2c3d"));
  EXPECT_FALSE(is_gone("a test"));
  EXPECT_FALSE(is_gone(""));
}

TEST(Owner, OfAnOlderFileIsKnownByItsNumberAlone) {
  const std::string own = this_process();
  EXPECT_FALSE(is_gone(own.substr(0, own.find(" started"))));
}

}  // namespace
}  // namespace commtune
