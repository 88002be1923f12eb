#include "probes/load/message_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "executor/memory/host_memory.h"

namespace commtune::probes {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

void write(std::span<std::byte> place, std::size_t element, float value) {
  std::memcpy(place.data() + element * sizeof(float), &value, sizeof(float));
}

TEST(MessageMemory, MovesOnSoThatNoMessageFindsItsBytesInTheCaches) {
  MemoryQueue operations(host_memory(), {});
  MessageMemory memory(operations, kMiB);
  std::set<const std::byte*> seen;
  for (int command = 0; command < 8; ++command) {
    memory.lay_out(2, 16, 16 << 10, Places::kAll);
    for (std::size_t slot = 0; slot < 2; ++slot) {
      for (std::size_t passed = 0; passed < 8; ++passed) seen.insert(memory.place(slot, passed).address);
    }
  }
  EXPECT_EQ(seen.size(), 64U) << "all of the mebibyte";
}

TEST(MessageMemory, StaysInOnePlaceIfAsked) {
  MemoryQueue operations(host_memory(), {});
  MessageMemory memory(operations, kMiB);
  memory.lay_out(2, 16, 4096, Places::kOne);
  EXPECT_EQ(memory.place(0, 0).address, memory.place(0, 5).address);
  EXPECT_NE(memory.place(0, 0).address, memory.place(1, 0).address);
}

TEST(MessageMemory, KeepsMessagesOfAllSlotsApart) {
  MemoryQueue operations(host_memory(), {});
  MessageMemory memory(operations, kMiB);
  memory.lay_out(3, 300, 10'000, Places::kAll);
  std::set<std::pair<const std::byte*, const std::byte*>> places;
  for (std::size_t slot = 0; slot < 3; ++slot) {
    for (std::size_t passed = 0; passed < 300; ++passed) {
      const auto place = memory.place(slot, passed);
      places.emplace(place.address, place.address + place.bytes);
    }
  }
  const std::byte* free_from = nullptr;
  for (const auto& [begin, end] : places) {
    EXPECT_GE(begin, free_from);
    free_from = end;
  }
  EXPECT_EQ(places.size(), std::size_t{3} * (kMiB / (std::size_t{3} * 12'288)));
}

TEST(MessageMemory, GrowsForMessagesThatDoNotFit) {
  MemoryQueue operations(host_memory(), {});
  MessageMemory memory(operations, 4096);
  memory.lay_out(4, 4, kMiB, Places::kAll);
  EXPECT_EQ(memory.place(3).bytes, kMiB);
  EXPECT_FALSE(memory.first_wrong());
}

TEST(MessageMemory, FindsASumThatIsWrongAndMendsIt) {
  MemoryQueue operations(host_memory(), {});
  MessageMemory memory(operations, kMiB);
  memory.lay_out(2, 6, 4000, Places::kAll);
  write(memory.place(1, 2).host(), 999, 2.0F);
  const auto wrong = memory.first_wrong();
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->element, 999U);
  EXPECT_EQ(wrong->value, 2.0F);
  memory.refill();
  EXPECT_FALSE(memory.first_wrong());
}

TEST(MessageMemory, WritesNothingThatNoMessageHad) {
  MemoryQueue operations(host_memory(), {});
  MessageMemory memory(operations, kMiB);
  memory.lay_out(2, 16, 4096, Places::kAll);
  const std::span<std::byte> had = memory.place(0, 1).host();
  const std::span<std::byte> next(had.data() + had.size(), had.size());
  write(had, 0, 2.0F);
  write(next, 0, 2.0F);
  memory.refill();
  EXPECT_FALSE(memory.first_wrong());
  float kept = 0;
  std::memcpy(&kept, next.data(), sizeof kept);
  EXPECT_EQ(kept, 2.0F);
}

TEST(MessageMemory, HoldsASingleElement) {
  MemoryQueue operations(host_memory(), {});
  MessageMemory memory(operations, 4096);
  memory.lay_out(1, 3, sizeof(float), Places::kAll);
  EXPECT_EQ(memory.place(0, 2).bytes, sizeof(float));
  EXPECT_FALSE(memory.first_wrong());
}

TEST(MessageMemory, HasNothingToCheckOnAServerThatDoesNotWork) {
  MemoryQueue operations(host_memory(), {});
  MessageMemory memory(operations, 4096);
  memory.lay_out(0, 16, 4096, Places::kAll);
  EXPECT_FALSE(memory.first_wrong());
}

}  // namespace
}  // namespace commtune::probes
