#include "tests/executor/memory/toy/toy.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "executor/memory/host_memory.h"
#include "executor/memory/reduce.h"

namespace commtune::toy {
namespace {

bool overlap(ConstBuffer a, ConstBuffer b) {
  return a.device == b.device && a.address < b.address + b.bytes && b.address < a.address + a.bytes;
}

}  // namespace

ToyMemory::ToyMemory(std::uint32_t number, Ends ends) : Memory(Device{number}), ends_(ends), random_(number) {
  if (ends == Ends::kOnAThread)
    thread_ = std::jthread([this](const std::stop_token& stop) { work_until(stop); });
}

ToyMemory::~ToyMemory() {
  thread_ = {};
  for (const auto& [address, block] : blocks_) munmap(const_cast<std::byte*>(address), block.reserved);
}

Buffer ToyMemory::allocate(std::size_t bytes) {
  const std::size_t reserved = std::max<std::size_t>(bytes, 1);
  void* const name = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (name == MAP_FAILED) throw std::runtime_error("no addresses are left for the toy");
  const std::lock_guard lock(mutex_);
  auto* const address = static_cast<std::byte*>(name);
  blocks_[address] = {reserved, std::vector<std::byte>(bytes, std::byte{0xa5})};
  return {address, bytes, device()};
}

void ToyMemory::release(const Buffer& buffer) noexcept {
  drain();
  const std::lock_guard lock(mutex_);
  munmap(buffer.address, blocks_.at(buffer.address).reserved);
  blocks_.erase(buffer.address);
}

std::byte* ToyMemory::place(ConstBuffer buffer) {
  if (buffer.on_host()) return const_cast<std::byte*>(buffer.address);
  if (buffer.device != device()) throw std::runtime_error("a buffer of another device");
  auto& [address, block] = *std::prev(blocks_.upper_bound(buffer.address));
  const auto offset = static_cast<std::size_t>(buffer.address - address);
  if (offset + buffer.bytes > block.bytes.size()) throw std::runtime_error("a buffer that nobody allocated");
  return block.bytes.data() + offset;
}

bool ToyMemory::Work::uses(ConstBuffer buffer) const {
  const auto overlaps = [&](ConstBuffer own) { return overlap(own, buffer); };
  return std::ranges::any_of(writes, overlaps) || std::ranges::any_of(reads, overlaps);
}

bool ToyMemory::Work::conflicts_with(const Work& earlier) const {
  const auto is_used = [&](ConstBuffer own) { return earlier.uses(own); };
  const auto is_written = [&](ConstBuffer own) {
    return std::ranges::any_of(earlier.writes, [&](ConstBuffer other) { return overlap(other, own); });
  };
  return std::ranges::any_of(writes, is_used) || std::ranges::any_of(reads, is_written);
}

Memory::Started ToyMemory::start(Buffer into, ConstBuffer from, Run body) {
  return start({0, {into}, {from}, [=, this, body = std::move(body)] {
                  body({place(into), into.bytes}, {place(from), from.bytes});
                }});
}

Memory::Started ToyMemory::start(Work work) {
  MemoryOperationId id = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Work& other : works_) {
      if (work.conflicts_with(other)) ++conflicts_;
    }
    work.polls = 1 + static_cast<int>(random_() % 3);
    if (random_() % 5 == 0) {  // a device may be quick, too
      work.run();
      return std::nullopt;
    }
    ++late_;
    if (free_ids_.empty()) free_ids_.push_back(next_id_++);
    id = work.id = free_ids_.back();
    free_ids_.pop_back();
    works_.push_back(std::move(work));
    changed_.notify_all();
  }
  if (ends_ == Ends::kAfterPolls) call_wake();
  return id;
}

/// With the lock.
void ToyMemory::finish(std::size_t index) {
  works_[index].run();
  ended_.push_back(works_[index].id);
  works_.erase(works_.begin() + static_cast<std::ptrdiff_t>(index));
  changed_.notify_all();
}

void ToyMemory::work_until(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !works_.empty(); })) {
    const unsigned turns = random_() % 8;
    lock.unlock();
    for (unsigned i = 0; i < turns; ++i) std::this_thread::yield();  // for whoever waits for it
    lock.lock();
    if (works_.empty()) continue;  // drained
    finish(random_() % works_.size());
    lock.unlock();
    call_wake();
    lock.lock();
  }
}

void ToyMemory::call_wake() {
  const std::lock_guard lock(waking_);
  if (wake_) wake_();
}

Memory::Started ToyMemory::copy(Buffer into, ConstBuffer from) {
  return start(into, from, [](auto to, auto what) { std::copy(what.begin(), what.end(), to.begin()); });
}

Memory::Started ToyMemory::add(DataType type, Buffer into, ConstBuffer from) {
  return start(into, from, [type](auto to, auto what) { commtune::add(type, to, what); });
}

Memory::Started ToyMemory::scale(DataType type, Buffer data, float factor) {
  return start(data, data, [=](auto to, auto /*what*/) { commtune::scale(type, to, factor); });
}

Memory::Started ToyMemory::cast(DataType into_type, Buffer into, DataType from_type, ConstBuffer from) {
  return start(into, from, [=](auto to, auto what) { commtune::cast(into_type, to, from_type, what); });
}

std::vector<Buffer> ToyMemory::placed(std::span<const Buffer> parts) {
  std::vector<Buffer> list;
  list.reserve(parts.size());
  for (const Buffer& part : parts) list.push_back(placed(part));
  return list;
}

Memory::Started ToyMemory::gather(Buffer into, std::span<const Buffer> parts) {
  const std::vector<Buffer> list(parts.begin(), parts.end());
  return start({0, {into}, {list.begin(), list.end()}, [=, this] {
                  host_memory().gather(placed(into), placed(list));
                }});
}

Memory::Started ToyMemory::scatter(std::span<const Buffer> parts, ConstBuffer from) {
  const std::vector<Buffer> list(parts.begin(), parts.end());
  return start({0, list, {from}, [=, this] {
                  host_memory().scatter(placed(list), ConstBuffer(place(from), from.bytes));
                }});
}

Memory::Started ToyMemory::encode(DataType into_type, Buffer into, std::span<const Buffer> parts,
                                  float factor) {
  const std::vector<Buffer> list(parts.begin(), parts.end());
  return start({0, {into}, {list.begin(), list.end()}, [=, this] {
                  host_memory().encode(into_type, placed(into), placed(list), factor);
                }});
}

Memory::Started ToyMemory::decode(std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
                                  std::atomic<std::uint64_t>& overflows) {
  const std::vector<Buffer> list(parts.begin(), parts.end());
  return start({0, list, {from}, [=, this, &overflows] {
                  host_memory().decode(placed(list), from_type, ConstBuffer(place(from), from.bytes),
                                       overflows);
                }});
}

std::span<const MemoryOperationId> ToyMemory::ended() {
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    if (ends_ == Ends::kAfterPolls) {
      for (std::size_t i = works_.size(); i-- > 0;) {
        if (--works_[i].polls == 0) finish(i);
      }
      more = !works_.empty();
    }
    reported_ = std::exchange(ended_, {});
    free_ids_.insert(free_ids_.end(), reported_.begin(), reported_.end());
  }
  if (more) call_wake();
  return reported_;
}

void ToyMemory::wake_with(std::function<void()> wake) {
  const std::lock_guard lock(waking_);
  wake_ = std::move(wake);
}

void ToyMemory::drain() noexcept {
  const std::lock_guard lock(mutex_);
  while (!works_.empty()) finish(works_.size() - 1);
}

void ToyMemory::write(Buffer into, std::span<const std::byte> from) {
  const std::lock_guard lock(mutex_);
  std::copy(from.begin(), from.end(), place(into));
}

void ToyMemory::read(std::span<std::byte> into, ConstBuffer from) {
  const std::lock_guard lock(mutex_);
  std::copy_n(place(from), from.bytes, into.data());
}

}  // namespace commtune::toy
