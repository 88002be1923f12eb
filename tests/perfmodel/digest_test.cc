#include "perfmodel/digest.h"

#include <gmock/gmock.h>

namespace commtune {
namespace {

TEST(Digest, IsTheSameOnEveryMachine) {
  // FNV-1a's offset basis through MurmurHash3's finalizer, and a fixed example: computed once, by hand in
  // another language; any change breaks stored digests.
  EXPECT_EQ(Digest().hex(), "efd01f60ba992926");
  EXPECT_EQ(Digest().add(std::uint64_t{1}).add("ring").add(0.5).hex(), "3649a8bd0d441d3a");
}

TEST(Digest, TellsApartWhatConcatenationWouldNot) {
  EXPECT_NE(Digest().add("ab").add("c").value(), Digest().add("a").add("bc").value());
  EXPECT_NE(Digest().add("").value(), Digest().value());
  EXPECT_NE(Digest().add(std::uint64_t{1}).add(std::uint64_t{2}).value(),
            Digest().add(std::uint64_t{2}).add(std::uint64_t{1}).value());
}

TEST(Digest, TakesBothZerosForOne) { EXPECT_EQ(Digest().add(0.0).value(), Digest().add(-0.0).value()); }

TEST(Digest, WritesSixteenDigits) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(Digest().add(i).hex().size(), 16U);
  }
}

}  // namespace
}  // namespace commtune
