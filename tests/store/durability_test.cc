// kill -9 in the middle of writes: nothing acknowledged is lost, nothing is half there.
//
// COMMTUNE_TEST_KILL_ROUNDS sets how often a writer is killed (default 20).

#include <csignal>
#include <random>

#include "store/database_connection.h"
#include "tests/store/processes.h"
#include "tests/store/support.h"

namespace commtune {
namespace {

using tests::ChildProcess;
using tests::small_sample;
using tests::TempFolder;
using tests::write_number;

constexpr std::size_t kBatch = 20;

int kill_rounds() {
  const char* text = std::getenv("COMMTUNE_TEST_KILL_ROUNDS");
  return text == nullptr ? 20 : std::stoi(text);
}

/// Writes for ever, one sample and a batch of them in turn. Says each number once it is stored: a single
/// sample's size is n, the batch's sizes are all n + 1.
void write_samples(const std::filesystem::path& path, RowId session, std::int64_t n, int pipe) {
  Store store = Store::open(path);
  for (;; n += 2) {
    store.append_sample(session, small_sample(static_cast<std::uint64_t>(n)));
    write_number(pipe, n);
    store.append_samples(session,
                         std::vector<NewSample>(kBatch, small_sample(static_cast<std::uint64_t>(n + 1))));
    write_number(pipe, n + 1);
  }
}

/// How many samples there are of each size.
std::map<std::int64_t, std::size_t> count_by_size(const Store& store, RowId session) {
  std::map<std::int64_t, std::size_t> count;
  for (const SampleRow& row : store.all_samples(session)) {
    ++count[static_cast<std::int64_t>(row.bytes.count)];
  }
  return count;
}

TEST(Killed, WriterLosesNothingAcknowledgedAndLeavesNothingHalfDone) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  Store parent = Store::open(path);
  const RowId session = tests::running_session(parent);
  parent = tests::memory_store();  // closed: the children must find the file as a killed process leaves it

  std::mt19937 random(4711);
  std::vector<std::int64_t> acknowledged;
  std::int64_t next = 2;
  const int rounds = kill_rounds();
  for (int round = 0; round < rounds; ++round) {
    ChildProcess writer([&](int pipe) { write_samples(path, session, next, pipe); });
    std::int64_t number = 0;
    const auto before = acknowledged.size();
    const auto wanted = before + random() % 30;
    while (acknowledged.size() < wanted && writer.read_number(number)) {
      acknowledged.push_back(number);
    }
    const auto moment = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 5000);
    while (std::chrono::steady_clock::now() < moment) {
    }
    writer.stop(SIGKILL);
    while (writer.read_number(number)) {
      acknowledged.push_back(number);
    }

    const Store store = Store::open(path);
    const auto stored = count_by_size(store, session);
    for (auto i = before; i < acknowledged.size(); ++i) {
      ASSERT_TRUE(stored.contains(acknowledged[i])) << "round " << round << ", number " << acknowledged[i];
    }
    next = stored.empty() ? 2 : (stored.rbegin()->first / 2 + 1) * 2;
  }

  const Store store = Store::open(path);
  const auto stored = count_by_size(store, session);
  for (const std::int64_t number : acknowledged) {
    ASSERT_TRUE(stored.contains(number)) << number;
  }
  for (const auto& [number, count] : stored) {
    ASSERT_EQ(count, number % 2 == 0 ? 1U : kBatch) << number;
  }
  sql::DatabaseConnection connection(path, sql::DatabaseConnection::Mode::kReadOnly, std::chrono::seconds(1));
  EXPECT_EQ(connection.text("PRAGMA integrity_check"), "ok");
  RecordProperty("rounds", rounds);
  RecordProperty("acknowledged", std::to_string(acknowledged.size()));
  EXPECT_GT(acknowledged.size(), static_cast<std::size_t>(rounds));
}

TEST(TwoProcesses, WriteAtOnce) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  Store store = Store::open(path);
  const RowId first = tests::running_session(store, "first");
  const RowId second = tests::running_session(store, "second");
  store = tests::memory_store();
  constexpr int kSamples = 100;
  const auto append = [&path](RowId session) {
    Store own = Store::open(path);
    for (int i = 0; i < kSamples; ++i) {
      own.append_sample(session, small_sample());
    }
  };
  ChildProcess one([&](int) { append(first); });
  ChildProcess two([&](int) { append(second); });
  EXPECT_EQ(one.read_text(), "");
  EXPECT_EQ(two.read_text(), "");
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(two.wait(), 0);
  store = Store::open(path);
  EXPECT_EQ(store.find_session(first)->samples, kSamples);
  EXPECT_EQ(store.find_session(second)->samples, kSamples);
}

TEST(KilledSession, IsStillRunningUntilSomebodySaysOtherwise) {
  const TempFolder folder;
  const auto path = folder / "store.db";
  ChildProcess prober([&](int pipe) {
    Store store = Store::open(path);
    const RowId session = tests::running_session(store);
    store.append_sample(session, small_sample());
    write_number(pipe, session);
    pause();
  });
  std::int64_t session = 0;
  ASSERT_TRUE(prober.read_number(session));
  prober.stop(SIGKILL);
  Store store = Store::open(path);
  ASSERT_EQ(store.find_session(session)->state, WorkState::kRunning);
  store.end_session(session, WorkState::kInterrupted, "its process is gone");
  EXPECT_EQ(store.resumable_session(store.find_session(session)->cluster)->samples, 1);
}

}  // namespace
}  // namespace commtune
