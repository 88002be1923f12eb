#include "tests/executor/collectives/library_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <functional>

#include "executor/base/segment.h"
#include "executor/collectives/library_queue.h"
#include "executor/memory/reduce.h"

namespace commtune::tests {
namespace {

constexpr std::array kTypes{DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16};
/// Fewer elements than ranks, some that do not divide, and more than fit into one packet.
constexpr std::array<std::size_t, 4> kElements{1, 7, 1000, 30'001};

using RawBytes = std::vector<std::byte>;

/// Whole numbers that every type holds exactly, and their sums too.
float value(int rank, std::size_t index) {
  return static_cast<float>(index % 7 + static_cast<std::size_t>(rank));
}
float sum_of_values(int ranks, std::size_t index) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value(rank, index);
  return sum;
}

RawBytes values_of(int rank, DataType type, std::size_t elements) {
  RawBytes bytes(elements * element_size(type).count);
  for (std::size_t i = 0; i < elements; ++i) set_element(type, bytes, i, value(rank, i));
  return bytes;
}

void run(Communicator& communicator, const std::function<Task()>& task) {
  communicator.run(task(), Clock::now() + std::chrono::seconds(200));
}

/// RawBytes in the memory that a communicator's gradients lie in.
class Data {
 public:
  Data(Communicator& communicator, RawBytes bytes)
      : communicator_(communicator), buffer_(communicator.memory().allocate(bytes.size())) {
    run(communicator, [&]() -> Task {
      co_await communicator.operations().copy(buffer_, ConstBuffer(std::span<const std::byte>(bytes)));
    });
  }
  ~Data() { communicator_.memory().release(buffer_); }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  const Buffer& buffer() const { return buffer_; }
  RawBytes read() const {
    RawBytes bytes(buffer_.bytes);
    run(communicator_,
        [&]() -> Task { co_await communicator_.operations().copy(Buffer(std::span(bytes)), buffer_); });
    return bytes;
  }

 private:
  Communicator& communicator_;
  const Buffer buffer_;
};

void expect_sums(const RawBytes& bytes, int ranks, DataType type, Range where) {
  const std::size_t element_bytes = element_size(type).count;
  for (std::size_t i = where.offset / element_bytes; i < where.end() / element_bytes; ++i) {
    ASSERT_EQ(element(type, bytes, i), sum_of_values(ranks, i)) << to_string(type) << ", element " << i;
  }
}

/// What every type and number of elements is tried with.
void with_each(const std::function<void(DataType type, std::size_t elements)>& body) {
  for (const DataType type : kTypes) {
    for (const std::size_t elements : kElements) body(type, elements);
  }
}

void all_reduce_sums(Communicator& communicator, CollectiveLibrary& library) {
  LibraryQueue queue(communicator, library);
  with_each([&](DataType type, std::size_t elements) {
    const Data data(communicator, values_of(communicator.rank(), type, elements));
    run(communicator, [&]() -> Task { co_await queue.all_reduce(type, data.buffer()); });
    expect_sums(data.read(), communicator.size(), type, {0, data.buffer().bytes});
  });
}

void reduce_scatter_sums_the_own_part(Communicator& communicator, CollectiveLibrary& library) {
  LibraryQueue queue(communicator, library);
  with_each([&](DataType type, std::size_t elements) {
    const Data data(communicator, values_of(communicator.rank(), type, elements));
    run(communicator, [&]() -> Task { co_await queue.reduce_scatter(type, data.buffer()); });
    expect_sums(
        data.read(), communicator.size(), type,
        segment(data.buffer().bytes, element_size(type).count, communicator.size(), communicator.rank()));
  });
}

void both_stages_are_an_all_reduce(Communicator& communicator, CollectiveLibrary& library) {
  LibraryQueue queue(communicator, library);
  with_each([&](DataType type, std::size_t elements) {
    const Data data(communicator, values_of(communicator.rank(), type, elements));
    run(communicator, [&]() -> Task {
      co_await queue.reduce_scatter(type, data.buffer());
      co_await queue.all_gather(type, data.buffer());
    });
    expect_sums(data.read(), communicator.size(), type, {0, data.buffer().bytes});
  });
}

void several_are_under_way(Communicator& communicator, CollectiveLibrary& library) {
  LibraryQueue queue(communicator, library);
  std::deque<Data> all;
  for (const std::size_t elements : kElements)
    all.emplace_back(communicator, values_of(communicator.rank(), DataType::kFloat32, elements));
  run(communicator, [&]() -> Task {
    std::vector<AsyncOperation> under_way;
    under_way.reserve(all.size());
    for (const Data& data : all) under_way.push_back(queue.all_reduce(DataType::kFloat32, data.buffer()));
    std::reverse(under_way.begin(), under_way.end());
    for (AsyncOperation& each : under_way) co_await each;
  });
  for (const Data& data : all)
    expect_sums(data.read(), communicator.size(), DataType::kFloat32, {0, data.buffer().bytes});
}

}  // namespace

const std::vector<LibraryCase>& library_cases() {
  static const std::vector<LibraryCase> cases = {
      {"AllReduceSums", all_reduce_sums},
      {"ReduceScatterSumsTheOwnPart", reduce_scatter_sums_the_own_part},
      {"BothStagesAreAnAllReduce", both_stages_are_an_all_reduce},
      {"SeveralAreUnderWay", several_are_under_way},
  };
  return cases;
}

}  // namespace commtune::tests
