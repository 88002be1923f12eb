// Texts whose sender says anything of their length.

#include <gmock/gmock.h>

#include <cstdint>
#include <string>

#include "executor/session/exchange.h"
#include "executor/transport/tcp/tcp.h"
#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"

namespace commtune::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HostileText, ALengthThatNobodyCouldAllocateIsRefused) {
  on_ranks(2, [](Transport& transport) {
    if (transport.peers().rank == 1) {
      const std::uint64_t length = std::uint64_t{1} << 62;
      transport.send(0, make_tag(TagSpace::kControl, 1), std::as_bytes(std::span(&length, 1)));
      wait_for(transport, 1);
      return;
    }
    Communicator communicator(transport);
    try {
      gather(communicator, "", soon());
      ADD_FAILURE() << "it was believed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConflict);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 1"), HasSubstr("4611686018427387904 B"),
                                      HasSubstr("at most 1073741824 B")));
    }
  });
}

TEST(HostileText, LongTextsTravelWithinTheLimitOfAMessage) {
  const std::string text(5'000'001, 'x');
  on_bootstraps(
      2,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        const auto transport = make_tcp_transport(bootstrap);
        Communicator communicator(*transport);
        for (const std::string& theirs : all_gather(communicator, text, soon())) EXPECT_EQ(theirs, text);
        synchronize(*transport);
      },
      2);
}

}  // namespace
}  // namespace commtune::tests
