#include "executor/transport/tcp/tcp.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <semaphore>
#include <vector>

#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"

namespace commtune::tests {
namespace {

/// Ranks as threads, joined by sockets on the loopback interface, without any MPI.
void on_tcp_ranks(int n, const std::function<void(Transport&)>& body, const TcpOptions& options = {},
                  int ranks_per_host = 0) {
  on_bootstraps(
      n,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        const auto transport = make_tcp_transport(bootstrap, options);
        transport->limit_messages(kConformanceLimits);
        body(*transport);
        synchronize(*transport);
      },
      ranks_per_host > 0 ? ranks_per_host : n);
}

/// As between hosts, at a pace.
TcpOptions paced(double bytes_per_second) {
  TcpOptions options;
  options.network = "127.0.0.0/8";
  options.pace = bytes_per_second;
  return options;
}

TEST(TcpTransport, EveryRankNamesTheSubnetThatOneOfThemIsNotIn) {
  on_bootstraps(
      3,
      [](const std::shared_ptr<Bootstrap>& bootstrap) {
        TcpOptions options;
        options.network = bootstrap->peers().rank == 2 ? "203.0.113.0/24" : "127.0.0.0/8";
        try {
          const auto transport = make_tcp_transport(bootstrap, options);
          FAIL() << "rank " << bootstrap->peers().rank << " connected";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
          EXPECT_NE(std::string(error.what()).find("rank 2 (host local2)"), std::string::npos)
              << error.what();
          EXPECT_NE(std::string(error.what()).find("subnet " + options.network), std::string::npos);
        }
      },
      1);
}

TEST(TcpTransport, SmallMessagesTravelTogether) {
  static constexpr std::uint32_t kCount = 20;
  on_tcp_ranks(2, [](Transport& transport) {
    std::array<std::array<std::byte, 100>, kCount> data{};
    synchronize(transport);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const Tag tag = make_tag(TagSpace::kReduce, i);
      if (transport.peers().rank == 0) {
        transport.send(1, tag, data[i]);
      } else {
        transport.receive(0, tag, data[i]);
      }
    }
    EXPECT_EQ(transport.wait(Clock::now() + std::chrono::seconds(200)).size(), kCount);
  });
}

TEST(TcpTransport, ALargeMessageTakesSmallOnesAlong) {
  std::binary_semaphore arrived(0);
  on_tcp_ranks(2, [&](Transport& transport) {
    const Tag first = make_tag(TagSpace::kReduce, 0), second = make_tag(TagSpace::kReduce, 1);
    std::array<std::byte, 100> small{};
    std::vector<std::byte> large(1 << 20);
    if (transport.peers().rank == 0) {
      transport.send(1, first, small);
      transport.send(1, second, large);
      EXPECT_TRUE(arrived.try_acquire_for(std::chrono::seconds(200))) << "it waited for its rank";
      wait_for(transport, 2);
    } else {
      transport.receive(0, first, small);
      wait_for(transport, 1);
      arrived.release();
      transport.receive(0, second, large);
      wait_for(transport, 1);
    }
  });
}

/// How long 2 MB from rank 0 to rank 1 take, with half of the link for it or with all; at a pace from the
/// start, or at one that is set before.
Seconds time_of_two_megabytes(double share, std::optional<double> set_pace = std::nullopt) {
  Seconds time{};
  on_tcp_ranks(
      2,
      [&](Transport& transport) {
        if (set_pace) transport.set_pace(*set_pace);
        transport.share_links(std::array{share, share});
        std::vector<std::byte> data(2'000'000);
        synchronize(transport);
        const Clock::time_point start = Clock::now();
        if (transport.peers().rank == 0) {
          transport.send(1, make_tag(TagSpace::kReduce, 0), data);
        } else {
          transport.receive(0, make_tag(TagSpace::kReduce, 0), data);
        }
        wait_for(transport, 1);
        if (transport.peers().rank == 1) time = Clock::now() - start;
      },
      paced(set_pace ? 0 : 40e6), 1);
  return time;
}

TEST(TcpTransport, SendsNoFasterThanItsShareOfThePace) {
  // 2 MB at 40 MB/s last 50 ms, at half of that 100 ms; the start is not paced, the machine may be slow.
  // Without a pace they take a few ms.
  EXPECT_GT(time_of_two_megabytes(1), Seconds{0.03});
  EXPECT_GT(time_of_two_megabytes(0.5), Seconds{0.06});
}

TEST(TcpTransport, SendsNoFasterThanAPaceThatIsSetLater) {
  EXPECT_GT(time_of_two_megabytes(0.5, 40e6), Seconds{0.06});
}

TEST(TcpTransport, RefusesOptionsThatMakeNoSense) {
  TcpOptions small, hasty;
  small.unsent_limit = Bytes{1};
  hasty.connect_timeout = Seconds{0};
  EXPECT_THROW(small.check(), Error);
  EXPECT_THROW(hasty.check(), Error);
}

}  // namespace
}  // namespace commtune::tests
