#include "tests/executor/transport/fault_cases.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "perfmodel/base/error.h"
#include "tests/executor/forked_ranks.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/conformance.h"

namespace commtune::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Tag kFaultTag = make_tag(TagSpace::kReduce, 7);

/// Runs a rank's part of a case on each of n ranks, which are threads and connected.
void on_connected(const JobConnector& connector, int n, const std::function<void(Transport&)>& body) {
  on_bootstraps(
      n,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        const auto transport = connector.connect(bootstrap);
        synchronize(*bootstrap);  // nobody fails before all are connected
        body(*transport);
      },
      connector.ranks_per_host);
}

/// What body throws.
std::optional<Error> thrown_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// Sends to a peer that may be gone before all of it has left.
void send_while_heard(Transport& transport, int to,
                      std::initializer_list<std::pair<Tag, std::span<const std::byte>>> messages) {
  [[maybe_unused]] const auto lost = thrown_by([&] {
    for (const auto& [tag, data] : messages) transport.send(to, tag, data);
    wait_for(transport, messages.size());
  });
}

void expect_peer_lost(const std::optional<Error>& error, const std::string& named) {
  ASSERT_TRUE(error) << "nothing was thrown";
  EXPECT_EQ(error->code(), ErrorCode::kPeerLost) << error->what();
  EXPECT_THAT(error->what(), HasSubstr(named));
}

void a_peer_that_leaves_is_named(const JobConnector& connector) {
  on_connected(connector, 2, [](Transport& transport) {
    if (transport.peers().rank == 1) return;
    std::array<std::byte, 8> data{};
    const auto error = thrown_by([&] {
      transport.receive(1, kFaultTag, data);
      wait_for(transport, 1);
    });
    expect_peer_lost(error, describe(transport.peers(), 1));
  });
}

void what_came_before_a_peer_left_is_still_told(const JobConnector& connector) {
  on_connected(connector, 2, [](Transport& transport) {
    std::array<int, 3> values{5, 6, 7};
    if (transport.peers().rank == 1) {
      for (const int& value : values) transport.send(0, kFaultTag, std::as_bytes(std::span(&value, 1)));
      wait_for(transport, values.size());
      return;
    }
    values = {};
    for (int& value : values) transport.receive(1, kFaultTag, std::as_writable_bytes(std::span(&value, 1)));
    wait_for(transport, values.size());
    EXPECT_EQ(values, (std::array{5, 6, 7}));
  });
}

void a_rank_that_gives_up_is_named(const JobConnector& connector) {
  on_connected(connector, connector.ranks, [&](Transport& transport) {
    if (transport.peers().rank == 1) return transport.abort("no memory");
    std::array<std::byte, 8> data{};
    const auto error = thrown_by([&] {
      transport.receive(1, kFaultTag, data);
      wait_for(transport, 1);
    });
    expect_peer_lost(error, describe(transport.peers(), 1));
    if (error) {
      EXPECT_THAT(error->what(), HasSubstr("no memory"));
    }
  });
}

void a_message_longer_than_its_receive_is_refused(const JobConnector& connector) {
  for (const bool early : {false, true}) {
    on_connected(connector, 2, [&](Transport& transport) {
      std::array<std::byte, 8> data{};
      const auto room = std::span(data).first(4);
      const Tag last = make_tag(TagSpace::kReduce, 8);
      if (transport.peers().rank == 0)
        return send_while_heard(transport, 1, {{kFaultTag, data}, {last, std::span(data).first(1)}});
      const auto error = thrown_by([&] {
        std::byte byte{};
        if (early) {
          transport.receive(0, last, std::span(&byte, 1));
          wait_for(transport, 1);
        }
        transport.receive(0, kFaultTag, room);
        wait_for(transport, 1);
      });
      ASSERT_TRUE(error) << "nothing was thrown";
      EXPECT_EQ(error->code(), ErrorCode::kConflict) << error->what();
      EXPECT_THAT(error->what(),
                  AllOf(HasSubstr(describe(transport.peers(), 0)),
                        HasSubstr("8 B where at most 4 B were expected"), HasSubstr("channel 1, number 7")));
      EXPECT_EQ(data, (std::array<std::byte, 8>{})) << "nothing was written";
    });
  }
}

void more_than_the_ranks_agreed_on_is_refused_or_arrives_whole(const JobConnector& connector) {
  // Who does not read what arrives itself has no limit to hold it against.
  const std::size_t bytes = kConformanceLimits.longest.count + 1;
  on_connected(connector, 2, [&](Transport& transport) {
    if (transport.peers().rank == 0) {
      const std::vector<std::byte> out(bytes, std::byte{3});
      return send_while_heard(transport, 1, {{kFaultTag, out}});
    }
    std::vector<std::byte> in(bytes);
    const auto error = thrown_by([&] {
      transport.receive(0, kFaultTag, in);
      wait_for(transport, 1);
    });
    if (!error) {
      EXPECT_EQ(in, std::vector<std::byte>(bytes, std::byte{3}));
      return;
    }
    EXPECT_EQ(error->code(), ErrorCode::kConflict) << error->what();
    EXPECT_THAT(error->what(),
                AllOf(HasSubstr(describe(transport.peers(), 0)), HasSubstr(fmt::format("{} B", bytes)),
                      HasSubstr(fmt::format("at most {} B", bytes - 1))));
  });
}

/// The last rank is killed while rank 0 and it send each other long messages without end, or while it is
/// silent; all others wait for something from it.
std::vector<RankEnd> kill_the_last(const JobConnector& connector, bool in_a_message) {
  const auto body = [&](std::shared_ptr<Bootstrap> bootstrap) -> std::string {
    const int rank = bootstrap->peers().rank;
    const int last = bootstrap->peers().size() - 1;
    const auto transport = connector.connect(bootstrap);
    bootstrap.reset();
    const bool exchanges = in_a_message && (rank == 0 || rank == last);
    const int peer = rank == last ? 0 : last;
    std::vector<std::byte> out(4 << 20), in(4 << 20);
    const auto killed_at = Clock::now() + std::chrono::milliseconds(200);
    for (std::uint32_t i = 0;; ++i) {
      const Tag tag = make_tag(TagSpace::kReduce, i % 1000);
      if (exchanges || rank != last) transport->receive(peer, tag, in);
      if (exchanges) transport->send(peer, tag, out);
      if (rank == last && !exchanges) transport->wait(killed_at);
      if (rank == last && Clock::now() >= killed_at) std::raise(SIGKILL);
      if (exchanges || rank != last) wait_for(*transport, exchanges ? 2 : 1);
    }
  };
  return on_forked_ranks(connector.ranks, body,
                         connector.ranks_per_host > 1 ? ForkedHosts::kOne : ForkedHosts::kOneEach);
}

void expect_the_last_is_named(const JobConnector& connector, bool in_a_message) {
  const auto start = Clock::now();
  const std::vector<RankEnd> ends = kill_the_last(connector, in_a_message);
  // 0.2 s until then. A kernel tells at once; of a card's peer: a look after a second or two, and 7.5 s until
  // the card gives up.
  EXPECT_LT(Seconds(Clock::now() - start).count(), 30);
  const std::size_t last = ends.size() - 1;
  EXPECT_TRUE(WIFSIGNALED(ends[last].status));
  for (std::size_t rank = 0; rank < last; ++rank) {
    EXPECT_TRUE(WIFEXITED(ends[rank].status) && WEXITSTATUS(ends[rank].status) == 1) << "rank " << rank;
    // What a card does first decides how: it answers no more, or its memory is gone already.
    const std::size_t host = connector.ranks_per_host > 1 ? 0 : last;
    EXPECT_THAT(ends[rank].said, HasSubstr(fmt::format("rank {} (host h{})", last, host)));
    fmt::print("rank {}: {}\n", rank, ends[rank].said);
  }
}

void a_rank_killed_in_the_middle_of_a_message_is_named(const JobConnector& connector) {
  expect_the_last_is_named(connector, true);
}

void a_rank_killed_while_others_wait_for_it_is_named(const JobConnector& connector) {
  expect_the_last_is_named(connector, false);
}

}  // namespace

const std::vector<FaultCase>& fault_cases() {
  static const std::vector<FaultCase> cases = {
      {"APeerThatLeavesIsNamed", a_peer_that_leaves_is_named},
      {"WhatCameBeforeAPeerLeftIsStillTold", what_came_before_a_peer_left_is_still_told},
      {"ARankThatGivesUpIsNamed", a_rank_that_gives_up_is_named},
      {"AMessageLongerThanItsReceiveIsRefused", a_message_longer_than_its_receive_is_refused},
      {"MoreThanTheRanksAgreedOnIsRefusedOrArrivesWhole",
       more_than_the_ranks_agreed_on_is_refused_or_arrives_whole},
      {"ARankKilledInTheMiddleOfAMessageIsNamed", a_rank_killed_in_the_middle_of_a_message_is_named, true},
      {"ARankKilledWhileOthersWaitForItIsNamed", a_rank_killed_while_others_wait_for_it_is_named, true},
  };
  return cases;
}

}  // namespace commtune::tests
