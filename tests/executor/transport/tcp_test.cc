#include "executor/transport/tcp/tcp.h"

#include <gtest/gtest.h>

#include "perfmodel/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"

namespace commtune::testing {
namespace {

/// A transport that lends its end to another one without owning it.
class Borrowed final : public Transport {
 public:
  explicit Borrowed(Transport& end) : end_(end) {}
  std::string_view name() const override { return end_.name(); }
  const Peers& peers() const override { return end_.peers(); }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    return end_.send(to, tag, data);
  }
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    return end_.receive(from, tag, data);
  }
  std::span<const Completion> wait(Deadline until) override { return end_.wait(until); }
  void wake() noexcept override { end_.wake(); }
  std::optional<TransferId> library_all_reduce(int ranks, DataType type, std::span<std::byte> data) override {
    return end_.library_all_reduce(ranks, type, data);
  }
  void abort(std::string_view why) noexcept override { end_.abort(why); }

 private:
  Transport& end_;
};

/// Ranks as threads on one host, joined by sockets on the loopback interface.
void on_tcp_ranks(int n, const std::function<void(Transport&)>& body) {
  on_ranks(n,
           [&](Transport& local) {
             const auto transport = make_tcp_transport(std::make_unique<Borrowed>(local));
             body(*transport);
             synchronize(*transport);
           },
           {.ranks_per_host = n});
}

class TcpTransportTest : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(TcpTransportTest, Conforms) {
  for (const int ranks : {2, 3, 4}) on_tcp_ranks(ranks, GetParam().body);
}

INSTANTIATE_TEST_SUITE_P(Tcp, TcpTransportTest, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(TcpTransport, NamesTheRankThatClosedItsConnection) {
  on_ranks(2,
           [](Transport& local) {
             auto transport = make_tcp_transport(std::make_unique<Borrowed>(local));
             if (local.peers().rank == 1) return;
             std::array<std::byte, 8> data{};
             transport->receive(1, make_tag(Channel::kReduce, 0), data);
             try {
               while (transport->wait(Clock::now() + std::chrono::seconds(10)).empty()) {
               }
               FAIL() << "nothing was thrown";
             } catch (const Error& error) {
               EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
               EXPECT_NE(std::string(error.what()).find("rank 1 (host local0)"), std::string::npos)
                   << error.what();
             }
           },
           {.ranks_per_host = 2});
}

TEST(TcpTransport, RefusesOptionsThatMakeNoSense) {
  TcpOptions small, hasty;
  small.unsent_limit = Bytes{1};
  hasty.connect_timeout = Seconds{0};
  EXPECT_THROW(small.check(), Error);
  EXPECT_THROW(hasty.check(), Error);
}

}  // namespace
}  // namespace commtune::testing
