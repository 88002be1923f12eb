#include "executor/memory/host_memory.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <new>

#include "executor/memory/reduce.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

/// A cache line: no two buffers share one, and vectors are aligned.
constexpr std::align_val_t kAlignment{64};

class HostMemory final : public Memory {
 public:
  HostMemory() : Memory(Device::kHost) {}

  std::string_view name() const override { return "host"; }

  Buffer allocate(std::size_t bytes) override {
    try {
      return {static_cast<std::byte*>(::operator new(bytes, kAlignment)), bytes};
    } catch (const std::bad_alloc&) {
      throw Error(ErrorCode::kUnavailable, fmt::format("host memory: there are no {} B left", bytes));
    }
  }
  void release(const Buffer& buffer) noexcept override { ::operator delete(buffer.address, kAlignment); }

  Started copy(Buffer into, ConstBuffer from) override {
    assert(into.bytes == from.bytes);
    if (into.bytes > 0) std::memcpy(into.host().data(), from.host().data(), into.bytes);
    return std::nullopt;
  }
  Started add(DataType type, Buffer into, ConstBuffer from) override {
    commtune::add(type, into.host(), from.host());
    return std::nullopt;
  }
  Started scale(DataType type, Buffer data, float factor) override {
    commtune::scale(type, data.host(), factor);
    return std::nullopt;
  }
  Started cast(DataType into_type, Buffer into, DataType from_type, ConstBuffer from) override {
    commtune::cast(into_type, into.host(), from_type, from.host());
    return std::nullopt;
  }
  Started encode(DataType into_type, Buffer into, ConstBuffer from, float factor) override {
    commtune::encode(into_type, into.host(), from.host(), factor);
    return std::nullopt;
  }
  Started decode(Buffer into, DataType from_type, ConstBuffer from,
                 std::atomic<std::uint64_t>& overflows) override {
    overflows += commtune::decode(into.host(), from_type, from.host());
    return std::nullopt;
  }

  std::span<const MemoryOperationId> ended() override { return {}; }
  void wake_with(std::function<void()> /*wake*/) override {}
  void drain() noexcept override {}
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace commtune
