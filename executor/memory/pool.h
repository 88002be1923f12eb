#pragma once
// Memory that is kept for the next user: what travels is allocated, and registered, once. One thread each.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "executor/memory/host_memory.h"
#include "executor/memory/memory.h"

namespace commtune {

/// A buffer that a registry knows from the constructor to the destructor.
class Registration {
 public:
  /// registry  outlives this; nullptr: nobody has to know
  Registration(const Buffer& buffer, BufferRegistry* registry) : buffer_(buffer), registry_(registry) {
    if (registry_ != nullptr) registry_->register_buffer(buffer_);
  }
  Registration(Registration&& other) noexcept
      : buffer_(other.buffer_), registry_(std::exchange(other.registry_, nullptr)) {}
  Registration& operator=(Registration&&) = delete;
  ~Registration() {
    if (registry_ != nullptr) registry_->unregister_buffer(buffer_);
  }

 private:
  Buffer buffer_;
  BufferRegistry* registry_;
};

/// A buffer of its own, which a registry knows.
class Allocation {
 public:
  Allocation(Memory& memory, std::size_t bytes, BufferRegistry* registry)
      : owner_(memory, bytes), registration_(owner_.buffer, registry) {}
  const Buffer& buffer() const { return owner_.buffer; }

 private:
  struct Owner {
    Owner(Memory& of, std::size_t bytes) : memory(&of), buffer(of.allocate(bytes)) {}
    Owner(Owner&& other) noexcept : memory(std::exchange(other.memory, nullptr)), buffer(other.buffer) {}
    Owner& operator=(Owner&&) = delete;
    ~Owner() {
      if (memory != nullptr) memory->release(buffer);
    }
    Memory* memory;
    Buffer buffer;
  };
  Owner owner_;
  Registration registration_;  // after it: ends before the memory does
};

/// What roads receive into before they add: blocks of one size.
class Scratch {
 public:
  explicit Scratch(std::size_t block_bytes, Memory& memory = host_memory(),
                   BufferRegistry* registry = nullptr)
      : block_bytes_(block_bytes), memory_(memory), registry_(registry) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Gives itself back. Outlived by its Scratch.
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), whole_(std::exchange(other.whole_, {})) {}
    Block& operator=(Block&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(whole_, other.whole_);
      return *this;
    }
    ~Block() {
      if (pool_ != nullptr) pool_->free_.push_back(whole_);  // within the capacity that take() reserved
    }
    Buffer bytes(std::size_t n) const { return whole_.first(n); }
    bool valid() const { return pool_ != nullptr; }

   private:
    friend class Scratch;
    Block(Scratch* pool, const Buffer& whole) : pool_(pool), whole_(whole) {}
    Scratch* pool_ = nullptr;
    Buffer whole_;
  };

  Block take();
  std::size_t block_bytes() const { return block_bytes_; }
  /// Bytes allocated so far, in use or not.
  std::size_t allocated() const { return storage_.size() * block_bytes_; }

 private:
  const std::size_t block_bytes_;
  Memory& memory_;
  BufferRegistry* const registry_;
  std::vector<Allocation> storage_;
  std::vector<Buffer> free_;
};

/// Buffers of any size: who takes one gets the smallest free one that is large enough.
class BufferPool {
 public:
  explicit BufferPool(Memory& memory = host_memory(), BufferRegistry* registry = nullptr)
      : memory_(memory), registry_(registry) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  Buffer take(std::size_t bytes);
  /// buffer  what take() returned
  void give_back(const Buffer& buffer) noexcept;
  std::size_t allocated() const;

 private:
  struct Block {
    Allocation memory;
    bool taken = false;
  };
  Memory& memory_;
  BufferRegistry* const registry_;
  std::vector<Block> blocks_;
};

}  // namespace commtune
