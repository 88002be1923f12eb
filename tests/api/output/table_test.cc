#include "api/output/table.h"

#include <gtest/gtest.h>

namespace commtune::api {
namespace {

TEST(Table, AlignsByWhatIsSeenAndLeavesNoBlanksAtLineEnds) {
  Table table({{"name", Align::kLeft}, {"time"}, {"note", Align::kLeft}});
  table.add({"ring", "9 µs", ""});
  table.add({"a", "311 µs", "slow"});
  EXPECT_EQ(table.text(),
            "name    time  note\n"
            "ring    9 µs\n"
            "a     311 µs  slow\n");
}

TEST(Table, MarksRows) {
  Table table({{"x", Align::kLeft}});
  table.add({"a"});
  table.add({"b"}, true);
  EXPECT_EQ(table.text(), "  x\n  a\n> b\n");
}

}  // namespace
}  // namespace commtune::api
