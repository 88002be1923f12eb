#pragma once
// The memory of a device that does not exist: only it can read what its addresses name (the host's processor
// is killed by the kernel where it tries), and its operations end later, in any order.

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "executor/memory/memory.h"

namespace commtune::toy {

class ToyMemory final : public Memory {
 public:
  enum class Ends {
    kOnAThread,   ///< of its own, as a GPU beside the processor
    kAfterPolls,  ///< when ended() was asked some times
  };
  /// number  1, 2, ...: of the device
  ToyMemory(std::uint32_t number, Ends ends);
  ~ToyMemory() override;

  std::string_view name() const override { return "toy"; }
  Buffer allocate(std::size_t bytes) override;
  void release(const Buffer& buffer) noexcept override;
  Started copy(Buffer into, ConstBuffer from) override;
  Started add(DataType type, Buffer into, ConstBuffer from) override;
  Started scale(DataType type, Buffer data, float factor) override;
  Started cast(DataType into_type, Buffer into, DataType from_type, ConstBuffer from) override;
  Started gather(Buffer into, std::span<const Buffer> parts) override;
  Started scatter(std::span<const Buffer> parts, ConstBuffer from) override;
  Started encode(DataType into_type, Buffer into, std::span<const Buffer> parts, float factor) override;
  Started decode(std::span<const Buffer> parts, DataType from_type, ConstBuffer from,
                 std::atomic<std::uint64_t>& overflows) override;
  std::span<const MemoryOperationId> ended() override;
  void wake_with(std::function<void()> wake) override;
  void drain() noexcept override;

  /// For tests: straight into the device and out of it, where no operation is under way.
  void write(Buffer into, std::span<const std::byte> from);
  void read(std::span<std::byte> into, ConstBuffer from);
  /// Operations that ended later than their call.
  std::uint64_t late() const { return late_; }
  /// Operations that were started on memory which another one was still writing, or wrote what one still
  /// read.
  std::uint64_t conflicts() const { return conflicts_; }

 private:
  using Run = std::function<void(std::span<std::byte> into, std::span<const std::byte> from)>;
  struct Work {
    MemoryOperationId id = 0;
    std::vector<Buffer> writes;
    std::vector<ConstBuffer> reads;
    std::function<void()> run;  // with the lock
    int polls = 0;              // until it ends
    bool uses(ConstBuffer buffer) const;
    bool conflicts_with(const Work& earlier) const;
  };
  struct Block {
    std::size_t reserved = 0;  // bytes of addresses
    std::vector<std::byte> bytes;
  };
  Started start(Buffer into, ConstBuffer from, Run body);
  Started start(Work work);
  /// The parts where the device keeps them.
  std::vector<Buffer> placed(std::span<const Buffer> parts);
  Buffer placed(Buffer buffer) { return {place(buffer), buffer.bytes}; }
  void work_until(const std::stop_token& stop);
  void call_wake();
  void finish(std::size_t index);
  std::byte* place(ConstBuffer buffer);  // where the device keeps it

  const Ends ends_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::mt19937 random_;
  std::map<const std::byte*, Block> blocks_;  // by address
  std::vector<Work> works_;
  std::vector<MemoryOperationId> free_ids_, ended_, reported_;
  MemoryOperationId next_id_ = 0;

  std::atomic<std::uint64_t> late_{0}, conflicts_{0};
  std::mutex waking_;  // guards wake_, and lasts for a call of it
  std::function<void()> wake_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace commtune::toy
