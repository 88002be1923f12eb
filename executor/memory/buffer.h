#pragma once
// Where bytes lie.

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace commtune {

/// Whose memory: the host's, or a device's. Who makes a device's Memory gives it a number that no other
/// device of the process has; buffers of equal numbers share an address space.
enum class Device : std::uint32_t { kHost = 0 };

/// A stretch of memory, of which it owns nothing. Only what is on_host() may be read by the processor; of
/// anything else the address is a name, for its Memory to work with.
template <typename Byte>
struct BasicBuffer {
  Byte* address = nullptr;
  std::size_t bytes = 0;
  Device device = Device::kHost;

  constexpr BasicBuffer() = default;
  constexpr BasicBuffer(Byte* where, std::size_t length, Device whose = Device::kHost)
      : address(where), bytes(length), device(whose) {}
  /// Of the host: whatever a span can be made of.
  template <typename Range>
  requires std::convertible_to<Range, std::span<Byte>>
  constexpr BasicBuffer(Range&& range)  // NOLINT: as a span is made of a vector, without a word
      : BasicBuffer(std::span<Byte>(range)) {}
  constexpr BasicBuffer(std::span<Byte> memory)  // NOLINT(google-explicit-constructor): the same
      : address(memory.data()), bytes(memory.size()) {}
  template <std::same_as<std::byte> Other>
  requires std::is_const_v<Byte>
  constexpr BasicBuffer(const BasicBuffer<Other>& other)  // NOLINT: what may be written may be read
      : address(other.address), bytes(other.bytes), device(other.device) {}

  constexpr bool on_host() const { return device == Device::kHost; }
  constexpr std::span<Byte> host() const {
    assert(on_host());
    return {address, bytes};
  }
  /// Inside it: address arithmetic, which every device's addresses allow.
  constexpr BasicBuffer part(std::size_t offset, std::size_t length) const {
    assert(offset + length <= bytes);
    return {address + offset, length, device};
  }
  constexpr BasicBuffer first(std::size_t length) const { return part(0, length); }

  bool operator==(const BasicBuffer&) const = default;
};

using Buffer = BasicBuffer<std::byte>;
using ConstBuffer = BasicBuffer<const std::byte>;  ///< that is only read

}  // namespace commtune
