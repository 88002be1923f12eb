#include "probes/load/message_memory.h"

#include <algorithm>
#include <cmath>

namespace commtune::probes {

namespace {

constexpr float kValue = 1.0F;      // a mean of ones is one, however often it is taken
constexpr float kRounding = 1e-5F;  // relative: a hundred roundings of float32, whatever order sums have
constexpr std::size_t kPageBytes = 4096;  // the smallest page: touching one byte of each has them all

std::size_t elements_in(std::size_t bytes) { return (bytes + sizeof(float) - 1) / sizeof(float); }

}  // namespace

MessageMemory::MessageMemory(std::size_t bytes) : memory_(elements_in(bytes), kValue) {}

void MessageMemory::lay_out(std::size_t slots, std::size_t messages, std::size_t message_bytes,
                            Places places) {
  touched_.assign(slots, 0);
  message_bytes_ = message_bytes;
  step_ = (message_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::size_t least = elements_in(slots * step_);
  if (memory_.size() < least) memory_.assign(least, kValue);
  places_ = 1;
  first_ = 0;
  if (places == Places::kOne || slots == 0) return;
  places_ = memory_.size() * sizeof(float) / (slots * step_);
  first_ = cursor_ / step_ % places_;
  cursor_ += (messages + slots - 1) / slots * step_;
}

std::size_t MessageMemory::first_element(std::size_t slot, std::size_t passed) const {
  return (slot * places_ + (first_ + passed) % places_) * step_ / sizeof(float);
}

std::span<std::byte> MessageMemory::place(std::size_t slot, std::size_t passed) {
  touched_[slot] = std::max(touched_[slot], std::min(passed + 1, places_));
  const std::span<float> elements = std::span(memory_).subspan(first_element(slot, passed));
  return std::as_writable_bytes(elements).first(message_bytes_);
}

std::optional<MessageMemory::Wrong> MessageMemory::first_wrong() const {
  for (std::size_t slot = 0; slot < touched_.size(); ++slot) {
    for (std::size_t passed = 0; passed < touched_[slot]; ++passed) {
      for (const std::size_t index : {std::size_t{0}, message_bytes_ / sizeof(float) - 1}) {
        const float value = memory_[first_element(slot, passed) + index];
        if (std::abs(value - kValue) > kRounding) return Wrong{index, value};
      }
    }
  }
  return std::nullopt;
}

void MessageMemory::refill() {
  for (std::size_t slot = 0; slot < touched_.size(); ++slot) {
    for (std::size_t passed = 0; passed < touched_[slot]; ++passed) {
      std::fill_n(&memory_[first_element(slot, passed)], elements_in(message_bytes_), kValue);
    }
  }
}

}  // namespace commtune::probes
