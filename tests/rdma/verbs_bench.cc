// How fast two ranks send to each other, to be held against perftest on the same cards (tests/rdma/run
// --compare).
//
//   verbs_bench verbs CARD CARD
//   verbs_bench tcp NETWORK NETWORK     such as 10.0.0.1/32
//
// Prints `latency_us=X bandwidth_mb=Y`: half a round trip of 8 B, the median; and the rate of messages of
// 64 KiB, from registered memory, as many under way at a time as perftest has.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/transport/tcp/tcp.h"
#include "executor/transport/verbs/verbs.h"
#include "tests/executor/forked_ranks.h"

namespace commtune::tests {
namespace {

constexpr int kRounds = 1000;
constexpr int kMessages = 1000;
constexpr std::size_t kSize = std::size_t{64} << 10;
constexpr std::uint32_t kUnderWay = 128;
constexpr Tag kTag = make_tag(TagSpace::kReduce, 0);

void end_one(Transport& transport, std::size_t& ended) {
  for (const auto before = ended; ended == before;)
    ended += transport.wait(Clock::now() + std::chrono::seconds(60)).size();
}

double half_round_trip(Transport& transport) {
  std::array<std::byte, 8> out{}, in{};
  const int peer = 1 - transport.peers().rank;
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    const auto start = Clock::now();
    std::size_t ended = 0;
    transport.receive(peer, kTag, in);
    if (peer == 1) transport.send(peer, kTag, out);
    while (ended < (peer == 1 ? 2U : 1U)) end_one(transport, ended);
    if (peer == 0) {
      transport.send(peer, kTag, out);
      end_one(transport, ended);
    }
    times.push_back(Seconds(Clock::now() - start).count() / 2);
  }
  std::ranges::nth_element(times, times.begin() + kRounds / 2);
  return times[kRounds / 2];
}

double bytes_per_second(Transport& transport) {
  std::vector<std::byte> data(kSize * kUnderWay);
  transport.register_memory(data);
  const auto start = Clock::now();
  std::size_t ended = 0;
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    const auto part = std::span(data).subspan(i % kUnderWay * kSize, kSize);
    while (i - ended >= kUnderWay) end_one(transport, ended);
    if (transport.peers().rank == 0) {
      transport.send(1, kTag, part);
    } else {
      transport.receive(0, kTag, part);
    }
  }
  while (ended < kMessages) end_one(transport, ended);
  transport.unregister_memory(data);
  return static_cast<double>(kSize) * kMessages / Seconds(Clock::now() - start).count();
}

std::unique_ptr<Transport> make(std::string_view kind, const char* place,
                                std::shared_ptr<Bootstrap> bootstrap) {
  if (kind == "tcp") {
    TcpOptions options;
    options.network = place;
    return make_tcp_transport(std::move(bootstrap), options);
  }
  VerbsOptions options;
  options.gid.device = place;
  return make_verbs_transport(std::move(bootstrap), options);
}

}  // namespace
}  // namespace commtune::tests

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): what is thrown ends the bench
  using namespace commtune;
  const std::string_view kind = argc == 4 ? argv[1] : "";
  if (kind != "verbs" && kind != "tcp") {
    fmt::print(stderr, "usage: verbs_bench verbs CARD CARD | tcp NETWORK NETWORK\n");
    return 2;
  }
  const auto ends = tests::on_forked_ranks(2, [&](std::shared_ptr<Bootstrap> bootstrap) {
    const char* const place = argv[2 + bootstrap->peers().rank];
    const auto transport = tests::make(kind, place, std::move(bootstrap));
    const double latency = tests::half_round_trip(*transport);
    const double rate = tests::bytes_per_second(*transport);
    return fmt::format("latency_us={:.2f} bandwidth_mb={:.1f}", latency * 1e6, rate / 1e6);
  });
  fmt::print("{}\n", ends[1].said);
  return ends[0].status | ends[1].status;
}
