#include "tests/cluster/frame.h"

#include <sys/mman.h>

#include <new>

#include "perfmodel/base/error.h"

namespace commtune::cluster {

namespace {

std::byte* map(std::size_t bytes) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error(ErrorCode::kUnavailable, "no memory for frame buffers");
  return static_cast<std::byte*>(memory);
}

}  // namespace

void FramePool::Unmap::operator()(std::byte* memory) const noexcept { ::munmap(memory, bytes); }

FramePool::FramePool(std::size_t frames)
    : memory_(map(frames * sizeof(Frame)), Unmap{frames * sizeof(Frame)}) {
  free_.reserve(frames);
  for (std::size_t i = frames; i > 0; --i) {
    free_.push_back(reinterpret_cast<Frame*>(memory_.get() + (i - 1) * sizeof(Frame)));
  }
}

Frame* FramePool::take() {
  if (free_.empty()) return nullptr;
  Frame* memory = free_.back();
  free_.pop_back();
  return new (memory) Frame;  // sets the few fields, leaves the bytes alone
}

void FramePool::give_back(Frame* frame) { free_.push_back(frame); }

}  // namespace commtune::cluster
