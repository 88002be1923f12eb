#include "executor/engine/message_buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "executor/memory/reduce.h"

namespace commtune {
namespace {

std::array<std::byte, 64> numbered() {
  std::array<std::byte, 64> memory{};
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  return memory;
}

MemoryQueue host(host_memory(), {});  // NOLINT(cert-err58-cpp): it allocates nothing

/// Of a task that never waits.
void run(Task task) {
  task.start();
  ASSERT_TRUE(task.done());
  task.result();
}

TEST(MessageBuffer, NeedsNoCopyWhereItsPiecesLieSideBySide) {
  auto memory = numbered();
  const Gradients gradients{std::span(memory).first(16), std::span(memory).subspan(16, 16)};
  const Message message{{{0, Bytes{8}, Bytes{8}}, {1, Bytes{0}, Bytes{4}}}};
  const MessageBuffer buffer(message, gradients);
  EXPECT_FALSE(buffer.fused());
  EXPECT_EQ(buffer.data().address, memory.data() + 8);
  EXPECT_EQ(buffer.bytes(), 12U);
}

TEST(MessageBuffer, GathersPiecesInThePlansOrderAndScattersThemBack) {
  auto memory = numbered();
  const Gradients gradients{std::span(memory).first(16), std::span(memory).subspan(32, 16)};
  const Message message{{{1, Bytes{4}, Bytes{4}}, {0, Bytes{0}, Bytes{4}}}};
  MessageBuffer buffer(message, gradients);
  FusionPool pool;
  EXPECT_TRUE(buffer.fused());
  run(buffer.gather(pool, host));
  const std::span<std::byte> data = buffer.data().host();
  EXPECT_EQ(static_cast<int>(data[0]), 36);
  EXPECT_EQ(static_cast<int>(data[4]), 0);
  for (std::byte& byte : data) byte = std::byte{99};
  run(buffer.scatter(pool, host));
  EXPECT_EQ(memory[36], std::byte{99});
  EXPECT_EQ(memory[3], std::byte{99});
  EXPECT_EQ(memory[4], std::byte{4});
  EXPECT_EQ(memory[35], std::byte{35});
}

/// Halved in float32, then cast: 2 B on the wire for each element, and the sum back in float32.
TEST(MessageBuffer, CastsWhereThereIsACodec) {
  std::vector<float> gradient{1, 2, 300};
  const Gradients gradients{std::as_writable_bytes(std::span(gradient))};
  const Message message{{{0, Bytes{4}, Bytes{8}}}};
  MessageBuffer buffer(message, gradients, codec_of(WireFormat::kFloat16, 2));
  FusionPool pool;
  EXPECT_TRUE(buffer.fused());
  EXPECT_EQ(buffer.bytes(), 4U);
  run(buffer.gather(pool, host));
  EXPECT_EQ(buffer.data().bytes, 4U);
  EXPECT_EQ(element(DataType::kFloat16, buffer.data().host(), 0), 1.0F);
  EXPECT_EQ(element(DataType::kFloat16, buffer.data().host(), 1), 150.0F);
  set_element(DataType::kFloat16, buffer.data().host(), 1, std::numeric_limits<float>::infinity());
  run(buffer.scatter(pool, host));
  EXPECT_EQ(gradient, (std::vector<float>{1, 1, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(pool.overflows(), 1U);
}

TEST(MessageBuffer, CountsTheTimeThatCopyingTakes) {
  std::vector<std::byte> memory(std::size_t{1} << 20);
  const Gradients gradients{std::span(memory).first(400'000), std::span(memory).last(400'000)};
  FusionPool pool;
  MessageBuffer fused(Message{{{0, Bytes{0}, Bytes{400'000}}, {1, Bytes{0}, Bytes{400'000}}}}, gradients);
  run(fused.gather(pool, host));
  const auto there = pool.copying();
  EXPECT_GT(there.count(), 0);
  run(fused.scatter(pool, host));
  EXPECT_GT(pool.copying(), there);
}

/// The last of three lies before the others, and the first apart.
TEST(MessageBuffer, GradientsSideBySideAreOneStretch) {
  auto memory = numbered();
  const std::span all(memory);
  EXPECT_EQ(stretches({all.subspan(40, 8), all.subspan(16, 8), all.first(16)}),
            (std::vector<Buffer>{all.first(24), all.subspan(40, 8)}));
}

}  // namespace
}  // namespace commtune
