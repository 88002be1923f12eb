#include "executor/memory/memory_queue.h"

namespace commtune {

MemoryQueue::MemoryQueue(Memory& memory, std::function<void()> wake) : memory_(memory) {
  if (!memory_.on_host()) memory_.wake_with(std::move(wake));
}

MemoryQueue::~MemoryQueue() {
  if (memory_.on_host()) return;
  memory_.drain();
  memory_.wake_with({});
}

}  // namespace commtune
