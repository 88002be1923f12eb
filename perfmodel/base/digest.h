#pragma once
// A 64-bit digest that is the same on every machine: what ranks compare before they trust each other's data.

#include <cstdint>
#include <string>
#include <string_view>

namespace commtune {

/// FNV-1a (Fowler, Noll, Vo; 64 bits) over a canonical byte string, finished with MurmurHash3's avalanche.
/// Integers enter as 8 bytes little-endian, doubles as their IEEE 754 bits (-0 as 0), texts and lists led by
/// their length, so that different values never share a byte string. Finds accidents, not forgeries.
class Digest {
 public:
  Digest& add(std::uint64_t value);
  Digest& add(std::int64_t value) { return add(static_cast<std::uint64_t>(value)); }
  Digest& add(std::uint32_t value) { return add(static_cast<std::uint64_t>(value)); }
  Digest& add(std::int32_t value) { return add(static_cast<std::int64_t>(value)); }
  Digest& add(double value);
  Digest& add(std::string_view text);
  Digest& add(const char* text) { return add(std::string_view(text)); }

  std::uint64_t value() const;
  std::string hex() const;  ///< 16 lower-case hexadecimal digits

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

}  // namespace commtune
