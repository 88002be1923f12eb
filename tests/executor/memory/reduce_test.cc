#include "executor/memory/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace commtune {
namespace {

template <typename T>
std::span<std::byte> memory(std::vector<T>& data) {
  return std::as_writable_bytes(std::span(data));
}

TEST(Add, AddsEveryFloat32AtEveryLength) {
  for (std::size_t n = 0; n < 70; ++n) {
    std::vector<float> a(n);
    std::vector<float> b(n);
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = static_cast<float>(i);
      b[i] = static_cast<float>(2 * i) + 0.5F;
    }
    add(DataType::kFloat32, memory(a), memory(b));
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(a[i], static_cast<float>(3 * i) + 0.5F);
  }
}

TEST(Add, WorksOnMemoryThatIsAlignedForElementsOnly) {
  std::vector<float> a(33, 1.0F);
  std::vector<float> b(33, 2.0F);
  add(DataType::kFloat32, memory(a).subspan(4), memory(b).subspan(4));
  EXPECT_EQ(a[0], 1.0F);
  for (std::size_t i = 1; i < 33; ++i) EXPECT_EQ(a[i], 3.0F);
}

TEST(Half, EveryValueSurvivesTheWayToFloat32AndBack) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      std::vector<std::uint16_t> one{static_cast<std::uint16_t>(bits)};
      const float value = element(type, memory(one), 0);
      if (std::isnan(value)) continue;
      set_element(type, memory(one), 0, value);
      ASSERT_EQ(one[0], bits);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  std::vector<std::uint16_t> one{0};
  // float16 has 11 significant bits: 2049 lies between 2048 and 2050 and goes to the even one.
  set_element(DataType::kFloat16, memory(one), 0, 2049.0F);
  EXPECT_EQ(element(DataType::kFloat16, memory(one), 0), 2048.0F);
  set_element(DataType::kFloat16, memory(one), 0, 2051.0F);
  EXPECT_EQ(element(DataType::kFloat16, memory(one), 0), 2052.0F);
  set_element(DataType::kFloat16, memory(one), 0, 65519.0F);
  EXPECT_EQ(element(DataType::kFloat16, memory(one), 0), 65504.0F);
  set_element(DataType::kFloat16, memory(one), 0, 65520.0F);
  EXPECT_TRUE(std::isinf(element(DataType::kFloat16, memory(one), 0)));
  // bfloat16 has 8: 257 goes to 256, 259 to 260.
  set_element(DataType::kBfloat16, memory(one), 0, 257.0F);
  EXPECT_EQ(element(DataType::kBfloat16, memory(one), 0), 256.0F);
  set_element(DataType::kBfloat16, memory(one), 0, 259.0F);
  EXPECT_EQ(element(DataType::kBfloat16, memory(one), 0), 260.0F);
}

TEST(Half, VectorsAddAndScaleLikeSingleElements) {
  // The vector path (where the processor has one) and the portable path that does the rest of an odd length.
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    std::vector<std::uint16_t> a(1 << 16);
    std::vector<std::uint16_t> b(1 << 16);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<std::uint16_t>(i);
      b[i] = static_cast<std::uint16_t>(i * 40503 + 17);
    }
    auto sums = a;
    add(type, memory(sums), memory(b));
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::vector<std::uint16_t> one{a[i]};
      add(type, memory(one), std::as_bytes(std::span(b).subspan(i, 1)));
      const float expected = element(type, memory(one), 0);
      const float got = element(type, memory(sums), i);
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << i;
    }
    auto scaled = a;
    scale(type, memory(scaled), 1.0F / 3);
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::vector<std::uint16_t> one{a[i]};
      scale(type, memory(one), 1.0F / 3);
      const float expected = element(type, memory(one), 0);
      const float got = element(type, memory(scaled), i);
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << i;
    }
  }
}

TEST(Cast, VectorsRoundLikeSingleElements) {
  std::vector<float> wide(1 << 16 | 5);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    wide[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 2654435761U));
  }
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    std::vector<std::uint16_t> halves(wide.size());
    cast(type, memory(halves), DataType::kFloat32, memory(wide));
    std::vector<float> back(wide.size());
    cast(DataType::kFloat32, memory(back), type, memory(halves));
    for (std::size_t i = 0; i < wide.size(); ++i) {
      std::vector<std::uint16_t> one{0};
      set_element(type, memory(one), 0, wide[i]);
      if (std::isnan(wide[i])) {
        ASSERT_TRUE(std::isnan(element(type, memory(halves), i))) << i;
        ASSERT_TRUE(std::isnan(back[i])) << i;
      } else {
        ASSERT_EQ(halves[i], one[0]) << i;
        ASSERT_EQ(back[i], element(type, memory(one), 0)) << i;
      }
    }
  }
}

TEST(Cast, GoesThroughFloat32BetweenTheShortTypes) {
  std::vector<std::uint16_t> halves{0};
  std::vector<std::uint16_t> brains{0};
  set_element(DataType::kFloat16, memory(halves), 0, 257.0F);
  cast(DataType::kBfloat16, memory(brains), DataType::kFloat16, memory(halves));
  EXPECT_EQ(element(DataType::kBfloat16, memory(brains), 0), 256.0F);
  cast(DataType::kBfloat16, memory(halves), DataType::kBfloat16, memory(brains));
  EXPECT_EQ(halves, brains);
}

TEST(Cast, WhatFloat16HasNoRoomForIsInfinite) {
  std::vector<float> wide{70000.0F, -1e30F};
  std::vector<std::uint16_t> halves(2);
  cast(DataType::kFloat16, memory(halves), DataType::kFloat32, memory(wide));
  EXPECT_EQ(element(DataType::kFloat16, memory(halves), 0), std::numeric_limits<float>::infinity());
  EXPECT_EQ(element(DataType::kFloat16, memory(halves), 1), -std::numeric_limits<float>::infinity());
}

TEST(Encode, MultipliesInFloat32AndRoundsOnce) {
  std::vector<float> wide(1 << 16 | 5);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    wide[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 2654435761U));
  }
  constexpr float kThird = 1.0F / 3;
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    std::vector<std::uint16_t> halves(wide.size());
    encode(type, memory(halves), memory(wide), kThird);
    for (std::size_t i = 0; i < wide.size(); ++i) {
      std::vector<std::uint16_t> one{0};
      set_element(type, memory(one), 0, wide[i] * kThird);
      if (std::isnan(wide[i])) {
        ASSERT_TRUE(std::isnan(element(type, memory(halves), i))) << i;
      } else {
        ASSERT_EQ(halves[i], one[0]) << i;
      }
    }
  }
}

/// Three of five results are no numbers of float16: one was none before.
TEST(Decode, CountsWhatWasFiniteBefore) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> own{1.0F, kInfinity, 70000.0F, -1e30F, 2.0F};
  std::vector<std::uint16_t> sums(own.size());
  encode(DataType::kFloat16, memory(sums), memory(own), 1);
  EXPECT_EQ(decode(memory(own), DataType::kFloat16, memory(sums)), 2U);
  EXPECT_EQ(own, (std::vector<float>{1.0F, kInfinity, kInfinity, -kInfinity, 2.0F}));
  EXPECT_EQ(decode(memory(own), DataType::kFloat16, memory(sums)), 0U);
}

TEST(Decode, LooksThroughEveryElementOfALongStretch) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    std::vector<std::uint16_t> sums(10'007, 0);
    std::vector<float> own(sums.size(), 1.0F);
    for (const std::size_t at : {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, sums.size() - 1})
      set_element(type, memory(sums), at, std::numeric_limits<float>::infinity());
    EXPECT_EQ(decode(memory(own), type, memory(sums)), 4U);
    EXPECT_EQ(own[1], 0.0F);
  }
}

}  // namespace
}  // namespace commtune
