#include "executor/base/task.h"

#include <array>
#include <new>

namespace commtune {
namespace {

constexpr std::size_t kGrain = 64;
constexpr std::size_t kClasses = 64;  // frames of up to 4 KiB are pooled; larger ones are rare and go to new

struct FreeFrame {
  FreeFrame* next;
};

/// Lists of free frames by size class, given back to the heap when the thread ends.
struct FramePool {
  std::array<FreeFrame*, kClasses> heads{};
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool() {
    for (FreeFrame* frame : heads) {
      while (frame != nullptr) ::operator delete(std::exchange(frame, frame->next));
    }
  }
};

thread_local FramePool pool;

std::size_t class_of(std::size_t bytes) { return (bytes + kGrain - 1) / kGrain; }

}  // namespace

void* allocate_frame(std::size_t bytes) {
  const std::size_t index = class_of(bytes);
  if (index >= kClasses) return ::operator new(bytes);
  FreeFrame*& head = pool.heads[index];
  if (head == nullptr) return ::operator new(index* kGrain);
  return std::exchange(head, head->next);
}

void free_frame(void* frame, std::size_t bytes) noexcept {
  const std::size_t index = class_of(bytes);
  if (index >= kClasses) {
    ::operator delete(frame);
    return;
  }
  pool.heads[index] = new (frame) FreeFrame{pool.heads[index]};
}

}  // namespace commtune
