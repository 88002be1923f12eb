#include "perfmodel/base/digest.h"

#include <array>
#include <bit>
#include <cstddef>

namespace commtune {

namespace {

// FNV-1a of 64 bits (Fowler, Noll, Vo).
constexpr std::uint64_t kFnvPrime = 0x100000001b3U;

/// The prime to the powers 0 to 8: what so many bytes of zero do to a state.
constexpr std::array<std::uint64_t, 9> kZeros = [] {
  std::array<std::uint64_t, 9> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * kFnvPrime;
  return powers;
}();

}  // namespace

/// Nearly all integers are small: their upper bytes, all zero, are one multiplication.
Digest& Digest::add(std::uint64_t value) {
  std::size_t zeros = 8;
  for (; value != 0; value >>= 8U, --zeros) state_ = (state_ ^ (value & 0xffU)) * kFnvPrime;
  state_ *= kZeros[zeros];
  return *this;
}

Digest& Digest::add(double value) { return add(std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value)); }

Digest& Digest::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  for (const char c : text) {
    state_ = (state_ ^ static_cast<unsigned char>(c)) * kFnvPrime;
  }
  return *this;
}

std::uint64_t Digest::value() const {
  std::uint64_t h = state_;
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdU;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53U;
  return h ^ (h >> 33);
}

std::string Digest::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::uint64_t h = value();
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    text += kDigits[(h >> shift) & 0xfU];
  }
  return text;
}

}  // namespace commtune
