#include "perfmodel/digest.h"

#include <bit>

namespace commtune {

namespace {

constexpr std::uint64_t kFnvPrime = 0x100000001b3U;

}  // namespace

Digest& Digest::add(std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    state_ = (state_ ^ ((value >> shift) & 0xffU)) * kFnvPrime;
  }
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
