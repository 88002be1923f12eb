#include "tests/gpu/standin/device_memory.h"

#include <cstdlib>
#include <iterator>

#include "tests/gpu/standin/settings.h"

namespace commtune::standin {
namespace {

/// As cuMemAlloc aligns.
constexpr std::size_t kAlignment = 256;

void* aligned(std::size_t bytes) {
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

DeviceMemory& device_memory() {
  static auto* const memory = new DeviceMemory;  // threads of streams may outlive what is static
  return *memory;
}

std::size_t DeviceMemory::of_a_device() {
  return static_cast<std::size_t>(setting("MEMORY", 8.0 * 1024 * 1024 * 1024));
}

std::size_t DeviceMemory::left(int device) {
  const std::lock_guard lock(mutex_);
  std::size_t used = 0;
  for (const auto& [address, range] : ranges_) {
    if (range.device == device) used += range.bytes;
  }
  return of_a_device() - used;
}

void* DeviceMemory::allocate(std::size_t bytes, int device) {
  if (bytes > left(device)) return nullptr;
  void* const address = aligned(bytes);
  const std::lock_guard lock(mutex_);
  if (address != nullptr) ranges_[reinterpret_cast<std::uintptr_t>(address)] = {bytes, device, true};
  return address;
}

void* DeviceMemory::allocate_pinned(std::size_t bytes) {
  void* const address = aligned(bytes);
  const std::lock_guard lock(mutex_);
  if (address != nullptr) ranges_[reinterpret_cast<std::uintptr_t>(address)] = {bytes, kHost, true};
  return address;
}

bool DeviceMemory::pin(void* address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return ranges_.try_emplace(reinterpret_cast<std::uintptr_t>(address), Range{bytes, kHost, false}).second;
}

bool DeviceMemory::unpin(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == ranges_.end() || found->second.allocated) return false;
  ranges_.erase(found);
  return true;
}

bool DeviceMemory::release(void* address, bool of_device) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == ranges_.end() || !found->second.allocated) return false;
    if ((found->second.device != kHost) != of_device) return false;
    ranges_.erase(found);
  }
  std::free(address);
  return true;
}

bool DeviceMemory::find(const void* address, std::size_t bytes, Range& range) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  auto found = ranges_.upper_bound(place);
  if (found == ranges_.begin()) return false;
  found = std::prev(found);
  if (place + bytes > found->first + found->second.bytes) return false;
  range = found->second;
  return true;
}

}  // namespace commtune::standin
