#pragma once
// A device's memory whose operations end when the test says so. Its addresses are the host's, so that a test
// can look at what is there.

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "executor/memory/memory.h"
#include "executor/memory/reduce.h"

namespace commtune::testing {

class ManualMemory final : public Memory {
 public:
  static constexpr Device kDevice{7};
  ManualMemory() : Memory(kDevice) {}

  /// Does the operation and lets the next ended() report it; waits for nothing.
  void end(MemoryOperationId id) {
    work_.at(id)();
    work_.erase(id);
    ended_.push_back(id);
    if (wake_) wake_();
  }
  std::size_t under_way() const { return work_.size(); }
  bool has_waker() const { return static_cast<bool>(wake_); }

  static Buffer on_device(std::span<std::byte> bytes) { return {bytes.data(), bytes.size(), kDevice}; }
  static std::span<std::byte> bytes_of(Buffer buffer) { return {buffer.address, buffer.bytes}; }
  static std::span<const std::byte> bytes_of(ConstBuffer buffer) { return {buffer.address, buffer.bytes}; }

  std::string_view name() const override { return "manual"; }
  Buffer allocate(std::size_t bytes) override {
    blocks_.push_back(std::make_unique<std::byte[]>(bytes));
    return {blocks_.back().get(), bytes, kDevice};
  }
  void release(const Buffer& /*buffer*/) noexcept override {}
  Started copy(Buffer into, ConstBuffer from) override {
    return start([=] { cast_bytes(into, from); });
  }
  Started add(DataType type, Buffer into, ConstBuffer from) override {
    return start([=] { commtune::add(type, bytes_of(into), bytes_of(from)); });
  }
  Started scale(DataType type, Buffer data, float factor) override {
    return start([=] { commtune::scale(type, bytes_of(data), factor); });
  }
  Started cast(DataType into_type, Buffer into, DataType from_type, ConstBuffer from) override {
    return start([=] { commtune::cast(into_type, bytes_of(into), from_type, bytes_of(from)); });
  }
  Started encode(DataType into_type, Buffer into, ConstBuffer from, float factor) override {
    return start([=] { commtune::encode(into_type, bytes_of(into), bytes_of(from), factor); });
  }
  Started decode(Buffer into, DataType from_type, ConstBuffer from,
                 std::atomic<std::uint64_t>& overflows) override {
    return start(
        [=, &overflows] { overflows += commtune::decode(bytes_of(into), from_type, bytes_of(from)); });
  }
  std::span<const MemoryOperationId> ended() override {
    reported_ = std::exchange(ended_, {});
    return reported_;
  }
  void wake_with(std::function<void()> wake) override { wake_ = std::move(wake); }
  void drain() noexcept override {
    while (!work_.empty()) end(work_.begin()->first);
  }

 private:
  static void cast_bytes(Buffer into, ConstBuffer from) {
    commtune::cast(DataType::kFloat16, bytes_of(into), DataType::kFloat16, bytes_of(from));
  }
  /// The smallest number that is free, so that they are used again early.
  Started start(std::function<void()> work) {
    MemoryOperationId id = 0;
    while (work_.contains(id)) ++id;
    work_[id] = std::move(work);
    return id;
  }

  std::map<MemoryOperationId, std::function<void()>> work_;
  std::vector<MemoryOperationId> ended_, reported_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::function<void()> wake_;
};

}  // namespace commtune::testing
