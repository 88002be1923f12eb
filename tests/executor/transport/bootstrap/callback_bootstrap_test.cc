#include "executor/transport/bootstrap/callback_bootstrap.h"

#include <gmock/gmock.h>

#include <array>
#include <string>

#include "executor/transport/tcp/tcp.h"
#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"

namespace commtune::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Ranks as threads whose callback is another bootstrap's all-gather.
///
/// calls  of the callback so far, by rank
void on_callbacks(int n,
                  const std::function<void(const std::shared_ptr<Bootstrap>&, const int& calls)>& body) {
  on_bootstraps(n, [&](const std::shared_ptr<Bootstrap>& meeting) {
    int calls = 0;
    const auto all_gather = [&](std::span<const std::byte> own) {
      ++calls;
      return meeting->all_gather(own, soon());
    };
    body(make_callback_bootstrap(meeting->peers().rank, n, all_gather), calls);
  });
}

TEST(CallbackBootstrap, GathersRecordsAndKnowsWhoSharesAHost) {
  on_callbacks(3, [](const std::shared_ptr<Bootstrap>& bootstrap, const int&) {
    EXPECT_THAT(bootstrap->peers().node, ElementsAre(0, 0, 0));  // threads of one process
    EXPECT_EQ(bootstrap->peers().hosts[0], bootstrap->peers().hosts[2]);
    EXPECT_FALSE(bootstrap->peers().hosts[0].empty());
    EXPECT_THAT(all_gather(*bootstrap, 10 + bootstrap->peers().rank, soon()), ElementsAre(10, 11, 12));
  });
}

TEST(CallbackBootstrap, IsCalledNoMoreOnceTheRanksAreConnected) {
  on_callbacks(3, [](const std::shared_ptr<Bootstrap>& bootstrap, const int& calls) {
    auto transport = make_tcp_transport(bootstrap);
    transport->limit_messages(kConformanceLimits);
    const int joined = calls;
    for (const ConformanceCase& each : conformance_cases()) each.body(*transport);
    synchronize(*transport);
    transport.reset();
    EXPECT_EQ(calls, joined);
  });
}

TEST(CallbackBootstrap, RefusesRecordsOfSeveralLengths) {
  on_callbacks(2, [](const std::shared_ptr<Bootstrap>& bootstrap, const int&) {
    const std::array<std::byte, 8> bytes{};
    try {
      bootstrap->all_gather(std::span(bytes).first(bootstrap->peers().rank == 1 ? 4 : 8), soon());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConflict);
      EXPECT_THAT(error.what(), HasSubstr("rank 1"));
    }
  });
}

TEST(CallbackBootstrap, RefusesACallbackThatGathersSomethingElse) {
  const auto nothing = [](std::span<const std::byte>) { return std::vector<std::byte>(3); };
  try {
    make_callback_bootstrap(0, 2, nothing);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConflict);
    EXPECT_THAT(error.what(), HasSubstr("returned 3 B: must be 16, 8 of each of 2 ranks"));
  }
}

TEST(CallbackBootstrap, RefusesARankThatTheJobDoesNotHave) {
  const auto none = [](std::span<const std::byte> own) { return std::vector(own.begin(), own.end()); };
  EXPECT_THROW(make_callback_bootstrap(1, 1, none), Error);
  EXPECT_THROW(make_callback_bootstrap(-1, 1, none), Error);
  EXPECT_EQ(make_callback_bootstrap(0, 1, none)->peers().size(), 1);
}

}  // namespace
}  // namespace commtune::tests
