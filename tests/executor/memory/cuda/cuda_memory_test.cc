// A GPU's memory against the host's, bit by bit: on a GPU its kernels, on the stand-in their twins.

#include "executor/memory/cuda/cuda_memory.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "executor/memory/cuda/gpu_memory.h"
#include "executor/memory/host_memory.h"
#include "executor/memory/reduce.h"
#include "perfmodel/base/error.h"

namespace commtune::tests {
namespace {

using cuda::CudaMemory;
using Bytes = std::vector<std::byte>;

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16};
constexpr DataType kShortTypes[] = {DataType::kFloat16, DataType::kBfloat16};
/// None, one, less than a vector, around a block's turn, and many.
constexpr std::size_t kElements[] = {0, 1, 7, 8, 255, 4096, 8191, 100'003};

class CudaMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    memory_ = std::make_unique<CudaMemory>(0);
  }

  CudaMemory& memory() { return *memory_; }

  void wait(Memory::Started started) {
    if (!started) return;
    for (;;) {
      for (const MemoryOperationId id : memory().ended()) {
        if (id == *started) return;
      }
    }
  }
  Bytes read(ConstBuffer from) {
    Bytes bytes(from.bytes);
    wait(memory().copy(Buffer(bytes), from));
    return bytes;
  }

  std::unique_ptr<CudaMemory> memory_;
};

/// A buffer of the GPU that a test fills, `shift` bytes behind where allocations begin.
class OnGpu {
 public:
  OnGpu(CudaMemory& memory, const Bytes& bytes, std::size_t shift = 0)
      : memory_(memory),
        whole_(memory.allocate(bytes.size() + shift)),
        part_(whole_.part(shift, bytes.size())) {
    memory_.copy(part_, ConstBuffer(std::span(bytes)));
    memory_.drain();
    memory_.ended();
  }
  ~OnGpu() { memory_.release(whole_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  const Buffer& buffer() const { return part_; }

 private:
  CudaMemory& memory_;
  Buffer whole_, part_;
};

/// Every kind of number: small and large, subnormal, halfway between two of a shorter type, infinite.
float special(std::mt19937& random) {
  static const std::vector<float> values{0.0F,
                                         -0.0F,
                                         1.0F,
                                         65504.0F,
                                         65520.0F,
                                         -70000.0F,
                                         6e-8F,
                                         2.98e-8F,
                                         1e-40F,
                                         3.0e38F,
                                         1.00048828125F,
                                         1.00390625F,
                                         std::numeric_limits<float>::infinity(),
                                         -std::numeric_limits<float>::infinity(),
                                         std::numeric_limits<float>::quiet_NaN()};
  if (random() % 8 == 0) return values[random() % values.size()];
  const float scale = std::ldexp(1.0F, static_cast<int>(random() % 40) - 25);
  return (static_cast<float>(random() % 20001) / 10000.0F - 1.0F) * scale;
}

Bytes numbers(DataType type, std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(elements * element_size(type).count);
  for (std::size_t i = 0; i < elements; ++i) set_element(type, bytes, i, special(random));
  return bytes;
}

/// What is no number on one side is none on the other, whatever its payload.
void expect_same(DataType type, const Bytes& got, const Bytes& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  const std::size_t size = element_size(type).count;
  for (std::size_t i = 0; i < got.size() / size; ++i) {
    if (std::memcmp(&got[i * size], &wanted[i * size], size) == 0) continue;
    if (std::isnan(element(type, got, i)) && std::isnan(element(type, wanted, i))) continue;
    FAIL() << to_string(type) << ", element " << i << " of " << got.size() / size << ": "
           << element(type, got, i) << ", must be " << element(type, wanted, i);
  }
}

TEST_F(CudaMemoryTest, CopiesBothWaysAndOnTheDevice) {
  const Bytes bytes = numbers(DataType::kFloat32, 10'001, 1);
  const OnGpu first(memory(), bytes);
  const OnGpu second(memory(), Bytes(bytes.size()), 4);
  wait(memory().copy(second.buffer(), first.buffer()));
  EXPECT_EQ(read(second.buffer()), bytes);
}

TEST_F(CudaMemoryTest, AddsAsTheHostDoes) {
  for (const DataType type : kTypes) {
    for (const std::size_t elements : kElements) {
      for (const std::size_t shift : {std::size_t{0}, element_size(type).count}) {
        Bytes into = numbers(type, elements, 2);
        const Bytes from = numbers(type, elements, 3);
        const OnGpu device_into(memory(), into);
        const OnGpu device_from(memory(), from, shift);
        wait(memory().add(type, device_into.buffer(), device_from.buffer()));
        add(type, into, from);
        expect_same(type, read(device_into.buffer()), into);
      }
    }
  }
}

TEST_F(CudaMemoryTest, ScalesAsTheHostDoes) {
  for (const DataType type : kTypes) {
    for (const std::size_t elements : kElements) {
      Bytes data = numbers(type, elements, 4);
      const OnGpu device(memory(), data, element_size(type).count);
      wait(memory().scale(type, device.buffer(), 1.0F / 3));
      scale(type, data, 1.0F / 3);
      expect_same(type, read(device.buffer()), data);
    }
  }
}

TEST_F(CudaMemoryTest, CastsAsTheHostDoes) {
  for (const DataType from_type : kTypes) {
    for (const DataType into_type : kTypes) {
      for (const std::size_t elements : kElements) {
        const Bytes from = numbers(from_type, elements, 5);
        Bytes into(elements * element_size(into_type).count);
        const OnGpu device_from(memory(), from);
        const OnGpu device_into(memory(), into);
        wait(memory().cast(into_type, device_into.buffer(), from_type, device_from.buffer()));
        cast(into_type, into, from_type, from);
        expect_same(into_type, read(device_into.buffer()), into);
      }
    }
  }
}

/// A list of parts of one block of the GPU, with gaps between them, and the same on the host.
class Parts {
 public:
  Parts(CudaMemory& memory, const std::vector<std::size_t>& bytes, std::size_t gap)
      : on_host_(numbers(DataType::kFloat32, all_of(bytes, gap) / 4 + 1, 6)), on_gpu_(memory, on_host_) {
    std::size_t at = 0;
    for (const std::size_t length : bytes) {
      gpu_parts_.push_back(on_gpu_.buffer().part(at, length));
      host_parts_.push_back(Buffer(on_host_).part(at, length));
      wire_bytes_ += length;
      at += length + gap;
    }
  }
  const std::vector<Buffer>& gpu() const { return gpu_parts_; }
  const std::vector<Buffer>& host() const { return host_parts_; }
  std::size_t wire_bytes() const { return wire_bytes_; }
  const Buffer& whole() const { return on_gpu_.buffer(); }
  const Bytes& whole_on_host() const { return on_host_; }

 private:
  static std::size_t all_of(const std::vector<std::size_t>& bytes, std::size_t gap) {
    std::size_t all = 0;
    for (const std::size_t length : bytes) all += length + gap;
    return all;
  }
  Bytes on_host_;
  OnGpu on_gpu_;
  std::vector<Buffer> gpu_parts_, host_parts_;
  std::size_t wire_bytes_ = 0;
};

/// One, few, more than a launch holds; short and long ones, empty ones among them.
std::vector<std::vector<std::size_t>> lists(std::size_t unit) {
  std::vector<std::vector<std::size_t>> all{{unit}, {0, unit * 5, 0}, {unit * 300'000, unit, unit * 17}};
  for (const std::size_t count : {161U, 241U, 5000U}) {
    std::mt19937 random(count);
    std::vector<std::size_t> list;
    list.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      list.push_back(unit * (random() % 10 == 0 ? random() % (4'000'000 / count) : random() % 100));
    all.push_back(std::move(list));
  }
  return all;
}

TEST_F(CudaMemoryTest, GathersAndScattersAnyNumberOfParts) {
  for (const std::size_t unit : {2U, 4U, 16U}) {
    for (const auto& list : lists(unit)) {
      for (const std::size_t gap : {0U, unit == 2 ? 2U : 12U}) {
        Parts parts(memory(), list, gap);
        Bytes wire(parts.wire_bytes());
        const OnGpu device_wire(memory(), wire, gap);
        wait(memory().gather(device_wire.buffer(), parts.gpu()));
        host_memory().gather(Buffer(wire), parts.host());
        ASSERT_EQ(read(device_wire.buffer()), wire)
            << list.size() << " parts, unit " << unit << ", gap " << gap;
        const Bytes other = numbers(DataType::kFloat16, wire.size() / 2, 7);
        const OnGpu device_other(memory(), other);
        wait(memory().scatter(parts.gpu(), device_other.buffer()));
        host_memory().scatter(parts.host(), ConstBuffer(std::span(other)));
        ASSERT_EQ(read(parts.whole()), parts.whole_on_host())
            << list.size() << " parts, unit " << unit << ", gap " << gap;
      }
    }
  }
}

TEST_F(CudaMemoryTest, EncodesAndDecodesParts) {
  for (const DataType type : kShortTypes) {
    for (const auto& list : lists(4)) {
      Parts parts(memory(), list, 4);
      Bytes wire(parts.wire_bytes() / 2);
      const OnGpu device_wire(memory(), wire);
      wait(memory().encode(type, device_wire.buffer(), parts.gpu(), 0.25F));
      host_memory().encode(type, Buffer(wire), parts.host(), 0.25F);
      expect_same(type, read(device_wire.buffer()), wire);
      const Bytes sums = numbers(type, wire.size() / 2, 8);
      const OnGpu device_sums(memory(), sums);
      std::atomic<std::uint64_t> overflows{5};
      std::atomic<std::uint64_t> expected{5};
      wait(memory().decode(parts.gpu(), type, device_sums.buffer(), overflows));
      host_memory().decode(parts.host(), type, ConstBuffer(std::span(sums)), expected);
      EXPECT_EQ(overflows, expected);
      expect_same(DataType::kFloat32, read(parts.whole()), parts.whole_on_host());
    }
  }
}

TEST_F(CudaMemoryTest, TellsOfEndsWithoutBeingAsked) {
  const OnGpu from(memory(), Bytes(1 << 20));
  const OnGpu into(memory(), Bytes(1 << 20));
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;
  memory().wake_with([&] {
    const std::lock_guard lock(mutex);
    ++calls;
    changed.notify_all();
  });
  const Memory::Started started = memory().copy(into.buffer(), from.buffer());
  ASSERT_TRUE(started);
  std::vector<MemoryOperationId> ended;
  for (int heard = 0; ended.empty();) {
    {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(100), [&] { return calls > heard; }));
      heard = calls;
    }
    const auto ids = memory().ended();  // none where the call was of an operation before
    ended.assign(ids.begin(), ids.end());
  }
  memory().wake_with({});
  EXPECT_THAT(ended, ::testing::ElementsAre(*started));
  EXPECT_THAT(memory().ended(), ::testing::IsEmpty());
}

TEST_F(CudaMemoryTest, SaysHowMuchIsLeftWhereItIsNotEnough) {
  try {
    memory().allocate(std::size_t{1} << 50);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), ::testing::StartsWith("cuda:0: there are no 1125899906842624 B left, but "));
  }
}

TEST_F(CudaMemoryTest, PinsWhatTheHostRegisters) {
  Bytes bytes(1 << 16);
  memory().register_buffer(Buffer(bytes));
  const OnGpu device(memory(), numbers(DataType::kFloat32, bytes.size() / 4, 9));
  wait(memory().copy(Buffer(bytes), device.buffer()));
  EXPECT_EQ(bytes, numbers(DataType::kFloat32, bytes.size() / 4, 9));
  memory().unregister_buffer(Buffer(bytes));
}

TEST_F(CudaMemoryTest, KnowsWhichGpusThereAre) {
  EXPECT_EQ(memory().name(), "cuda:0");
  EXPECT_FALSE(memory().on_host());
  try {
    CudaMemory other(gpu_count());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("numbered from 0"));
  }
}

}  // namespace
}  // namespace commtune::tests
