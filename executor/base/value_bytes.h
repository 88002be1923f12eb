#pragma once
// The bytes of a value that ranks exchange as it lies in memory: they run the same program on hosts alike.

#include <cstddef>
#include <span>
#include <type_traits>

namespace commtune {

template <typename T>
requires std::is_trivially_copyable_v<T> std::span<std::byte> value_bytes(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace commtune
