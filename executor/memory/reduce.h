#pragma once
// Sums over gradient bytes, vectorised. Every function takes whole elements; memory may be unaligned for
// vectors but is aligned for elements.

#include <cstddef>
#include <cstdint>
#include <span>

#include "perfmodel/profile.h"

namespace commtune {

/// into[i] += from[i]. fp16 and bf16 add in float32 and round to nearest even.
/// into and from do not overlap and have equal sizes, a multiple of the element size.
void add(DataType type, std::span<std::byte> into, std::span<const std::byte> from);

/// data[i] *= factor, rounded like add().
void scale(DataType type, std::span<std::byte> data, float factor);

/// into[i] = from[i] in the other type, rounded like add(). Equal numbers of elements. What float16 has no
/// room for becomes infinite.
void cast(DataType into_type, std::span<std::byte> into, DataType from_type, std::span<const std::byte> from);

/// into[i] = from[i] * factor: from float32, multiplied in float32, then rounded once to one of the short
/// types as by cast().
void encode(DataType into_type, std::span<std::byte> into, std::span<const std::byte> from, float factor);

/// into[i] = from[i]: from one of the short types to float32. Returns how many elements are infinite or no
/// number now whose float32 that was there before was finite.
std::uint64_t decode(std::span<std::byte> into, DataType from_type, std::span<const std::byte> from);

/// One element as float32, and back (round to nearest even).
float element(DataType type, std::span<const std::byte> data, std::size_t index);
void set_element(DataType type, std::span<std::byte> data, std::size_t index, float value);

}  // namespace commtune
