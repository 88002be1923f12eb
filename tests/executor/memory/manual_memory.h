#pragma once
// A device's memory whose operations end when the test says so. Its addresses are the host's, so that a test
// can look at what is there.

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "executor/memory/host_memory.h"
#include "executor/memory/memory.h"
#include "executor/memory/reduce.h"

namespace commtune::tests {

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
  Started gather(Buffer into, std::span<const Buffer> parts) override {
    return start([=, list = listed(parts)] { host_memory().gather(on_host(into), list); });
  }
  Started scatter(std::span<const Buffer> parts, ConstBuffer from) override {
    return start([=, list = listed(parts)] { host_memory().scatter(list, on_host(from)); });
  }
  Started encode(DataType into_type, Buffer into, std::span<const Buffer> parts, float factor) override {
    return start([=, list = listed(parts)] { host_memory().encode(into_type, on_host(into), list, factor); });
  }
  Started decode(std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
                 std::atomic<std::uint64_t>& overflows) override {
    return start([=, &overflows, list = listed(parts)] {
      host_memory().decode(list, from_type, on_host(from), overflows);
    });
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
  static Buffer on_host(Buffer buffer) { return {buffer.address, buffer.bytes}; }
  static ConstBuffer on_host(ConstBuffer buffer) { return {buffer.address, buffer.bytes}; }
  static std::vector<Buffer> listed(std::span<const Buffer> parts) {
    std::vector<Buffer> list(parts.begin(), parts.end());
    for (Buffer& part : list) part = on_host(part);
    return list;
  }
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

}  // namespace commtune::tests
