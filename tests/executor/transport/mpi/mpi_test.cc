// Every rank of an mpirun job runs this program; a test that fails on any rank fails the job.

#include "executor/transport/mpi/job.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "executor/collectives/registry/libraries.h"
#include "executor/transport/registry/kinds.h"
#include "executor/transport/registry/make_transport.h"
#include "perfmodel/base/error.h"
#include "tests/executor/collectives/library_cases.h"
#include "tests/executor/transport/conformance.h"
#include "tests/executor/transport/loopback.h"

namespace commtune::tests {
namespace {

std::shared_ptr<MpiJob> job;
std::map<std::string, std::unique_ptr<Transport>, std::less<>> transports;  // of the same ranks, by name
std::map<std::string, std::string> unusable;  // why the others are none, by name
bool over_sockets = false;                    // messages between ranks, as mpirun was told

Transport& mpi_transport() { return *transports.at("mpi"); }

/// Collective.
void connect_all() {
  for (const TransportKind* kind : transport_kinds()) {
    const std::string name(kind->name);
    try {
      auto transport = make_transport(name, job, {}, Clock::now() + std::chrono::seconds(200));
      transport->limit_messages(kConformanceLimits);
      transports.emplace(name, std::move(transport));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable || !tells_of_transport(error.what(), name)) throw;
      unusable.emplace(name, error.what());
    }
  }
}

/// A connection of this process's own, older than the library.
struct Foreign {
  LoopbackListener listener;
  LoopbackListener::Connection connection = listener.connection();
  int usual = connection.from.unsent_limit();
};
std::optional<Foreign> foreign;

/// Ranks as processes, which Open MPI makes known to each other: over each transport of the registry that can
/// join them, by its name.
class ProcessTransportTest
    : public ::testing::TestWithParam<std::tuple<const TransportKind*, ConformanceCase>> {};

TEST_P(ProcessTransportTest, Conforms) {
  const auto& [kind, test] = GetParam();
  const auto found = transports.find(kind->name);
  if (found == transports.end()) GTEST_SKIP() << unusable.at(std::string(kind->name));
  // What another rank sends in this case must not meet a receive of the one before.
  synchronize(*found->second);
  test.body(*found->second);
}

std::vector<const TransportKind*> kinds_for_processes() {
  std::vector<const TransportKind*> kinds;
  std::ranges::copy_if(transport_kinds(), std::back_inserter(kinds),
                       [](const TransportKind* kind) { return joins_processes(*kind); });
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Registry, ProcessTransportTest,
                         ::testing::Combine(::testing::ValuesIn(kinds_for_processes()),
                                            ::testing::ValuesIn(conformance_cases())),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)->name) + "_" +
                                  std::get<1>(test.param).name;
                         });

class OpenMpiLibraryTest : public ::testing::TestWithParam<LibraryCase> {};

TEST_P(OpenMpiLibraryTest, Conforms) {
  Communicator communicator(mpi_transport());
  const auto library = make_library("openmpi", {communicator, {}, {}}, communicator.size());
  GetParam().body(communicator, *library);
}

INSTANTIATE_TEST_SUITE_P(OpenMpi, OpenMpiLibraryTest, ::testing::ValuesIn(library_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

/// Its transport sleeps until there is something to do: for requests that are not its own, too.
TEST(OpenMpiLibrary, IsNotForOtherTransports) {
  EXPECT_EQ(why_no_library("openmpi", Communicator(*transports.at("tcp"))),
            "library openmpi: it works beside transport mpi alone, and this one is tcp");
}

TEST(MpiJob, GathersRecordsInTheOrderOfRanks) {
  const int rank = job->peers().rank;
  const auto records =
      all_gather(*job, std::array{rank, 10 * rank}, Clock::now() + std::chrono::seconds(200));
  ASSERT_EQ(records.size(), job->peers().hosts.size());
  for (int each = 0; each < job->peers().size(); ++each) {
    EXPECT_EQ(records[static_cast<std::size_t>(each)], (std::array{each, 10 * each}));
  }
}

TEST(MpiJob, EveryRankIsToldWhoseRecordHasAnotherLength) {
  const std::array<std::byte, 8> bytes{};
  const bool last = job->peers().rank == job->peers().size() - 1;
  try {
    job->all_gather(std::span(bytes).first(last ? 4 : 8), Clock::now() + std::chrono::seconds(200));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConflict);
    EXPECT_NE(std::string_view(error.what()).find("told the others 4 B"), std::string_view::npos)
        << error.what();
  }
}

/// TCP sockets of this process for which the kernel holds no more than so much unsent.
int limited_sockets(int bytes) {
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    int value = 0;
    socklen_t length = sizeof value;
    if (getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &length) == 0 && value == bytes) ++found;
  }
  return found;
}

TEST(MpiTransport, LimitsWhatTheKernelHoldsOfTheLibrarysConnectionsAlone) {
  EXPECT_EQ(foreign->connection.from.unsent_limit(), foreign->usual);
  EXPECT_EQ(foreign->connection.to.unsent_limit(), foreign->usual);
  const int others = mpi_transport().peers().size() - 1;
  if (over_sockets) {
    EXPECT_GE(limited_sockets(128 * 1024), others);
  } else {
    EXPECT_EQ(limited_sockets(128 * 1024), 0) << "messages go through memory";
  }
}

/// What fails on a rank that does not print its tests.
class FailurePrinter : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override { test_ = &test; }
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d, %s, %s:%d: %s\n", job->peers().rank, test_->name(), result.file_name(),
                 result.line_number(), result.message());
  }

  const ::testing::TestInfo* test_ = nullptr;
};

/// The first rank leaves half a second late; how often this one, if it is another, has woken until then.
long times_woken_while_leaving() {
  if (job->peers().rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const auto times_woken = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  const long before = times_woken();
  transports.clear();
  job.reset();
  return times_woken() - before;
}

}  // namespace
}  // namespace commtune::tests

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): what is thrown ends the test
  namespace test = commtune::tests;
  ::testing::InitGoogleTest(&argc, argv);
  test::over_sockets = argc > 1 && std::string_view(argv[1]) == "sockets";
  test::foreign.emplace();
  test::job = commtune::join_mpi_job();
  test::connect_all();
  // One voice: the first rank's, and of the others what fails.
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (test::job->peers().rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new test::FailurePrinter());
  }
  const int status = RUN_ALL_TESTS();
  if (status != 0) test::mpi_transport().abort("a test failed");
  const long woken = test::times_woken_while_leaving();
  if (woken < 1000) return status;
  std::fprintf(stderr, "a rank woke %ld times while it waited for the others to leave\n", woken);
  return 1;
}
