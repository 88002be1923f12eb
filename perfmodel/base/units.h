#pragma once
// Units as types: times are Seconds, sizes are Bytes, inverse bandwidths are SecondsPerByte. A bare double is
// a ratio or a count. Numbers become bare only at the edge (JSON, SQL, plots), where the name carries the
// unit.

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace commtune {

using Seconds = std::chrono::duration<double>;

struct Bytes {
  std::uint64_t count = 0;

  auto operator<=>(const Bytes&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm of 14
  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
};

constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
constexpr Bytes operator""_B(unsigned long long n) { return {n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {n << 20}; }

struct SecondsPerByte {
  double value = 0;

  auto operator<=>(const SecondsPerByte&) const = default;  // NOLINT(modernize-use-nullptr)
};

constexpr Seconds operator*(SecondsPerByte beta, Bytes n) {
  return Seconds{beta.value * static_cast<double>(n.count)};
}
constexpr Seconds operator*(Bytes n, SecondsPerByte beta) { return beta * n; }

/// Bandwidth as links are sold: "1Gbit", "100Gb/s", "200Mbit", "12.5GB/s" (powers of ten). Returns seconds
/// per byte. Throws Error{kBadInput} naming the text when the unit is missing or unknown or the number is not
/// positive.
SecondsPerByte parse_rate(std::string_view text);

/// Sizes as nccl-tests takes them: "8", "4K", "25M", "1G" (powers of two), also "4KiB", "25MiB", "1000B".
/// Throws Error{kBadInput}.
Bytes parse_size(std::string_view text);

/// Durations with a unit: "200us", "1.5ms", "10s", "2min". Throws Error{kBadInput}.
Seconds parse_duration(std::string_view text);

std::string format_size(Bytes size);    ///< "96.0 MiB", "512 B"
std::string format_time(Seconds time);  ///< "311 µs", "68.7 ms", "1.24 s"; "0 s" below 5 ps
std::string format_bandwidth(
    SecondsPerByte b);  ///< "0.118 GB/s" (10^9 bytes per second); "infinite" for zero

}  // namespace commtune
