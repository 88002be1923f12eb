// Many readers beside one writer, each thread with a connection of its own.

#include <atomic>
#include <thread>

#include "tests/store/support.h"

namespace commtune {
namespace {

TEST(Threads, ReadersSeeWholeTransactionsOnlyAndNeverGoBack) {
  const tests::TempFolder folder;
  Store store = Store::open(folder / "store.db");
  const RowId session = tests::running_session(store);
  constexpr std::size_t kPairs = 100;
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> reads = 0;

  const auto read = [&] {
    const Store reader = store.reader();
    std::size_t last = 0;
    do {
      const std::size_t count = reader.all_samples(session).size();
      if (count % 2 != 0 || count < last) {
        ++wrong;
      }
      last = count;
      ++reads;
    } while (!done);
  };
  std::vector<std::jthread> readers;
  readers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back(read);
  }
  const std::vector<NewSample> pair(2, tests::small_sample());
  for (std::size_t i = 0; i < kPairs; ++i) {
    store.append_samples(session, pair);
  }
  done = true;
  readers.clear();

  EXPECT_EQ(wrong, 0);
  EXPECT_GE(reads, 4);
  EXPECT_EQ(store.all_samples(session).size(), 2 * kPairs);
}

TEST(Threads, WritersTakeTurns) {
  const tests::TempFolder folder;
  const auto path = folder / "store.db";
  Store store = Store::open(path);
  const RowId session = tests::running_session(store);
  constexpr int kSamples = 50;
  const auto append = [&] {
    Store own = Store::open(path);
    for (int i = 0; i < kSamples; ++i) {
      own.append_sample(session, tests::small_sample());
    }
  };
  {
    const std::jthread first(append);
    const std::jthread second(append);
  }
  EXPECT_EQ(store.find_session(session)->samples, 2 * kSamples);
}

}  // namespace
}  // namespace commtune
