#pragma once
// What the stand-in's GPUs have allocated, and pages of the host that are pinned.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace commtune::standin {

class DeviceMemory {
 public:
  static constexpr int kHost = -1;
  struct Range {
    std::size_t bytes = 0;
    int device = kHost;
    bool allocated = false;  ///< here, and not only pinned
  };

  /// nullptr: COMMTUNE_STANDIN_MEMORY bytes a GPU are no more than that.
  void* allocate(std::size_t bytes, int device);
  void* allocate_pinned(std::size_t bytes);
  bool pin(void* address, std::size_t bytes);
  bool unpin(void* address);
  /// Of what allocate() or allocate_pinned() returned.
  bool release(void* address, bool of_device);
  /// The range that holds all of these bytes; false: none does.
  bool find(const void* address, std::size_t bytes, Range& range);
  std::size_t left(int device);
  static std::size_t of_a_device();

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, Range> ranges_;  // by address
};

DeviceMemory& device_memory();

}  // namespace commtune::standin
