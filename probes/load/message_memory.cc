#include "probes/load/message_memory.h"

#include <algorithm>
#include <cmath>

namespace commtune::probes {

namespace {

constexpr float kValue = 1.0F;      // a mean of ones is one, however often it is taken
constexpr float kRounding = 1e-5F;  // relative: a hundred roundings of float32, whatever order sums have
constexpr std::size_t kPageBytes = 4096;  // the smallest page: touching one byte of each has them all
constexpr std::size_t kStretch = std::size_t{256} << 10U;  // of ones, in floats

std::size_t whole_elements(std::size_t bytes) {
  return (bytes + sizeof(float) - 1) / sizeof(float) * sizeof(float);
}

}  // namespace

MessageMemory::MessageMemory(MemoryQueue& operations, std::size_t bytes)
    : operations_(operations), ones_(kStretch, kValue) {
  grow(whole_elements(bytes));
}

void MessageMemory::grow(std::size_t bytes) {
  memory_.reset();
  memory_.emplace(operations_.memory(), bytes, nullptr);
  write_ones(memory_->buffer());
  operations_.drain();
}

void MessageMemory::write_ones(const Buffer& into) {
  const ConstBuffer ones(std::as_bytes(std::span(ones_)));
  for (std::size_t at = 0; at < into.bytes; at += ones.bytes) {
    const std::size_t length = std::min(ones.bytes, into.bytes - at);
    static_cast<void>(operations_.copy(into.part(at, length), ones.first(length)));
  }
}

void MessageMemory::lay_out(std::size_t slots, std::size_t messages, std::size_t message_bytes,
                            Places places) {
  touched_.assign(slots, 0);
  message_bytes_ = message_bytes;
  step_ = (message_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::size_t least = slots * step_;
  if (memory_->buffer().bytes < least) grow(least);
  places_ = 1;
  first_ = 0;
  if (places == Places::kOne || slots == 0) return;
  places_ = memory_->buffer().bytes / (slots * step_);
  first_ = cursor_ / step_ % places_;
  cursor_ += (messages + slots - 1) / slots * step_;
}

std::size_t MessageMemory::offset_of(std::size_t slot, std::size_t passed) const {
  return (slot * places_ + (first_ + passed) % places_) * step_;
}

Buffer MessageMemory::place(std::size_t slot, std::size_t passed) {
  touched_[slot] = std::max(touched_[slot], std::min(passed + 1, places_));
  return memory_->buffer().part(offset_of(slot, passed), message_bytes_);
}

std::optional<MessageMemory::Wrong> MessageMemory::first_wrong() {
  const std::size_t last = message_bytes_ / sizeof(float) - 1;
  std::size_t places = 0;
  for (const std::size_t touched : touched_) places += touched;
  std::vector<float> values(2 * places);
  const Buffer read(std::as_writable_bytes(std::span(values)));
  std::size_t at = 0;
  for (std::size_t slot = 0; slot < touched_.size(); ++slot) {
    for (std::size_t passed = 0; passed < touched_[slot]; ++passed) {
      for (const std::size_t index : {std::size_t{0}, last}) {
        const std::size_t from = offset_of(slot, passed) + index * sizeof(float);
        static_cast<void>(operations_.copy(read.part(at * sizeof(float), sizeof(float)),
                                           memory_->buffer().part(from, sizeof(float))));
        ++at;
      }
    }
  }
  operations_.drain();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i] - kValue) > kRounding) return Wrong{i % 2 == 0 ? 0 : last, values[i]};
  }
  return std::nullopt;
}

void MessageMemory::refill() {
  for (std::size_t slot = 0; slot < touched_.size(); ++slot) {
    for (std::size_t passed = 0; passed < touched_[slot]; ++passed)
      write_ones(memory_->buffer().part(offset_of(slot, passed), whole_elements(message_bytes_)));
  }
  operations_.drain();
}

}  // namespace commtune::probes
