#include "perfmodel/base/digest.h"

#include <gmock/gmock.h>

namespace commtune {
namespace {

TEST(Digest, IsTheSameOnEveryMachine) {
  // FNV-1a's offset basis through MurmurHash3's finalizer, and a fixed example: computed once, by hand in
  // another language; any change breaks stored digests.
  EXPECT_EQ(Digest().hex(), "efd01f60ba992926");
  EXPECT_EQ(Digest().add(std::uint64_t{1}).add("ring").add(0.5).hex(), "3649a8bd0d441d3a");
}

TEST(Digest, TakesIntegersByteByByte) {
  // FNV-1a as it is published, a byte at a time, and MurmurHash3's finalizer.
  const auto state_of = [](std::uint64_t value) {
    std::uint64_t state = 0xcbf29ce484222325U;
    for (int i = 0; i < 8; ++i) state = (state ^ ((value >> (8 * i)) & 0xffU)) * 0x100000001b3U;
    return state;
  };
  const auto finished = [](std::uint64_t h) {
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdU;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53U;
    return h ^ (h >> 33);
  };
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{255}, std::uint64_t{256}, std::uint64_t{0xff0000},
        std::uint64_t{0x100000000}, std::uint64_t{0x0100000000000000}, ~std::uint64_t{0}})
    EXPECT_EQ(Digest().add(value).value(), finished(state_of(value))) << value;
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
