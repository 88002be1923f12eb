#include "executor/engine/message_buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace commtune {
namespace {

std::array<std::byte, 64> numbered() {
  std::array<std::byte, 64> memory{};
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  return memory;
}

TEST(MessageBuffer, NeedsNoCopyWhereItsPiecesLieSideBySide) {
  auto memory = numbered();
  const Gradients gradients{std::span(memory).first(16), std::span(memory).subspan(16, 16)};
  const Message message{{{0, Bytes{8}, Bytes{8}}, {1, Bytes{0}, Bytes{4}}}};
  MessageBuffer buffer(message, gradients);
  FusionPool pool;
  EXPECT_FALSE(buffer.fused());
  EXPECT_EQ(buffer.gather(pool).data(), memory.data() + 8);
  EXPECT_EQ(buffer.bytes(), 12U);
  EXPECT_EQ(pool.allocated(), 0U);
}

TEST(MessageBuffer, GathersPiecesInThePlansOrderAndScattersThemBack) {
  auto memory = numbered();
  const Gradients gradients{std::span(memory).first(16), std::span(memory).subspan(32, 16)};
  const Message message{{{1, Bytes{4}, Bytes{4}}, {0, Bytes{0}, Bytes{4}}}};
  MessageBuffer buffer(message, gradients);
  FusionPool pool;
  const std::span<std::byte> data = buffer.gather(pool);
  EXPECT_EQ(static_cast<int>(data[0]), 36);
  EXPECT_EQ(static_cast<int>(data[4]), 0);
  for (std::byte& byte : data) byte = std::byte{99};
  buffer.scatter(pool);
  EXPECT_EQ(memory[36], std::byte{99});
  EXPECT_EQ(memory[3], std::byte{99});
  EXPECT_EQ(memory[4], std::byte{4});
  EXPECT_EQ(memory[35], std::byte{35});
}

TEST(MessageBuffer, CountsTheTimeThatCopyingTakes) {
  std::vector<std::byte> memory(std::size_t{1} << 20);
  const Gradients gradients{std::span(memory).first(400'000), std::span(memory).last(400'000)};
  FusionPool pool;
  MessageBuffer whole(Message{{{0, Bytes{0}, Bytes{400'000}}}}, gradients);
  whole.gather(pool);
  whole.scatter(pool);
  EXPECT_EQ(pool.copying().count(), 0);
  MessageBuffer fused(Message{{{0, Bytes{0}, Bytes{400'000}}, {1, Bytes{0}, Bytes{400'000}}}}, gradients);
  fused.gather(pool);
  const auto there = pool.copying();
  EXPECT_GT(there.count(), 0);
  fused.scatter(pool);
  EXPECT_GT(pool.copying(), there);
}

TEST(FusionPool, ReusesTheSmallestBlockThatIsLargeEnough) {
  FusionPool pool;
  const auto large = pool.take(100);
  const auto small = pool.take(10);
  pool.give_back(large);
  pool.give_back(small);
  EXPECT_EQ(pool.take(8).data(), small.data());
  EXPECT_EQ(pool.take(8).data(), large.data());
  EXPECT_EQ(pool.allocated(), 110U);
}

}  // namespace
}  // namespace commtune
