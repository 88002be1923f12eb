#include "executor/memory/pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace commtune::tests {
namespace {

/// Knows what travels, and how often it was told.
class Known final : public BufferRegistry {
 public:
  void register_buffer(const Buffer& buffer) override {
    EXPECT_TRUE(addresses_.insert(buffer.address).second) << "told twice";
    ++told_;
  }
  void unregister_buffer(const Buffer& buffer) noexcept override { addresses_.erase(buffer.address); }
  bool has(const Buffer& buffer) const { return addresses_.contains(buffer.address); }
  std::size_t count() const { return addresses_.size(); }
  int told() const { return told_; }

 private:
  std::set<const std::byte*> addresses_;
  int told_ = 0;
};

TEST(Scratch, KeepsBlocksForTheNextUser) {
  Scratch scratch(64);
  const std::byte* first = nullptr;
  {
    const Scratch::Block block = scratch.take();
    EXPECT_TRUE(block.valid());
    first = block.bytes(1).address;
  }
  const Scratch::Block again = scratch.take();
  EXPECT_EQ(again.bytes(1).address, first);
  EXPECT_EQ(scratch.allocated(), 64U);
}

TEST(Scratch, TellsOfEachBlockOnceAsLongAsThereIsOne) {
  Known known;
  {
    Scratch scratch(64, host_memory(), &known);
    for (int i = 0; i < 3; ++i) {
      const Scratch::Block one = scratch.take();
      const Scratch::Block other = scratch.take();
      EXPECT_TRUE(known.has(one.bytes(64)));
      EXPECT_TRUE(known.has(other.bytes(64)));
    }
    EXPECT_EQ(known.told(), 2);
  }
  EXPECT_EQ(known.count(), 0U);
}

TEST(BufferPool, ReusesTheSmallestBufferThatIsLargeEnough) {
  Known known;
  {
    BufferPool pool(host_memory(), &known);
    const Buffer large = pool.take(100);
    const Buffer small = pool.take(10);
    pool.give_back(large);
    pool.give_back(small);
    EXPECT_EQ(pool.take(8).address, small.address);
    EXPECT_EQ(pool.take(8).address, large.address);
    EXPECT_EQ(pool.allocated(), 110U);
    EXPECT_EQ(known.told(), 2);
  }
  EXPECT_EQ(known.count(), 0U);
}

}  // namespace
}  // namespace commtune::tests
