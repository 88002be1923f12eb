// Strangers at a rank's socket while its run connects, and a rank that sends what no rank sends. Whatever
// they do, the right ranks connect, and what they send arrives. What every transport withstands is at the
// end, for the suite; the rest is of sockets.

#include <gmock/gmock.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "executor/transport/tcp/acceptor.h"
#include "executor/transport/tcp/handshake.h"
#include "executor/transport/tcp/introduction.h"
#include "executor/transport/tcp/mesh.h"
#include "executor/transport/tcp/peer_connection.h"
#include "executor/transport/tcp/tcp.h"
#include "perfmodel/base/error.h"
#include "tests/executor/ranks.h"
#include "tests/executor/transport/attack_surface.h"
#include "tests/executor/transport/conformance.h"
#include "tests/executor/transport/tcp/raw_peer.h"

COMMTUNE_DECLARE_ATTACK_SURFACE(tcp)

namespace commtune::tests {
namespace {

using tcp::kLoopback;

constexpr IpAddress kOtherLoopback = v4_address(0x7f000002);
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Tag kTag = make_tag(TagSpace::kReduce, 0);

// --- while ranks connect --------------------------------------------------------------------------------

/// What a rank sends to say who it is.
struct Greeting {
  tcp::Header header{sizeof(int), kTag, 0};
  int number = 0;
};

/// Where rank 0 listens for ranks of its host.
tcp::Endpoint door_of(const tcp::Introduction& known) { return {kLoopback, known.cards[0].loopback_port}; }

RawPeer knock(const tcp::Introduction& known) { return {kLoopback, door_of(known)}; }

tcp::Hello hello_of(int rank) { return {tcp::Hello::kMagic, rank, 0, tcp::make_challenge()}; }

/// Connects to rank 0 as a rank does; false where it is refused.
bool prove_to_be(int rank, const RawPeer& peer, const tcp::Secret& secret) {
  const tcp::Hello hello = hello_of(rank);
  tcp::Challenge challenge{};
  tcp::Proof shown{};
  return peer.say(hello) && peer.receive(challenge) &&
         peer.say(tcp::prove(secret, tcp::Side::kConnecting, hello, challenge)) && peer.receive(shown) &&
         tcp::equal(shown, tcp::prove(secret, tcp::Side::kAccepting, hello, challenge));
}

/// Rank 0 of a run: connects, and hears from each other rank the number that is its own.
void hear_right_ranks(const std::shared_ptr<Bootstrap>& bootstrap) {
  TcpOptions options;
  options.connect_timeout = Seconds{60};
  const auto transport = make_tcp_transport(bootstrap, options);
  std::vector<int> numbers(bootstrap->peers().hosts.size(), 0);
  for (int peer = 1; peer < bootstrap->peers().size(); ++peer) {
    auto& number = numbers[static_cast<std::size_t>(peer)];
    transport->receive(peer, kTag, std::as_writable_bytes(std::span(&number, 1)));
  }
  wait_for(*transport, numbers.size() - 1);
  for (std::size_t peer = 1; peer < numbers.size(); ++peer) {
    EXPECT_EQ(numbers[peer], 100 + static_cast<int>(peer));
  }
}

/// Of one who knows all that rank 1 of a run does.
using Attack = std::function<void(const tcp::Introduction&)>;

/// Rank 0 is attacked before rank 1 connects, as it should, and says so.
void survives(const Attack& attack) {
  on_bootstraps(
      2,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        if (bootstrap->peers().rank == 0) return hear_right_ranks(bootstrap);
        const tcp::Introduction known = tcp::introduce(*bootstrap, tcp::AddressCard{}, soon());
        attack(known);
        const auto mesh = tcp::meet(bootstrap->peers(), known, {}, soon());
        const Greeting greeting{.number = 101};
        EXPECT_TRUE(tcp::send_whole(mesh[0].get(), std::as_bytes(std::span(&greeting, 1))));
      },
      2);
}

void a_silent_one_delays_nobody() {
  std::vector<RawPeer> silent;
  survives([&](const tcp::Introduction& known) {
    for (int i = 0; i < 10; ++i) silent.push_back(knock(known));
  });
}

TEST(HostilePeer, AFloodDelaysNobody) {
  // Three times as many as may wait at once: the oldest go, and the rank tries again if it is among them.
  std::vector<RawPeer> flood;
  survives([&](const tcp::Introduction& known) {
    for (int i = 0; i < 200; ++i) flood.push_back(knock(known));
  });
}

TEST(HostilePeer, AFloodOfHalfAGreetingDelaysNobody) {
  std::vector<RawPeer> flood;
  survives([&](const tcp::Introduction& known) {
    for (int i = 0; i < 100; ++i) {
      flood.push_back(knock(known));
      flood.back().say(tcp::Hello::kMagic);
    }
  });
}

void wrong_magic_is_refused() {
  survives([](const tcp::Introduction& known) {
    const RawPeer peer = knock(known);
    tcp::Hello hello = hello_of(1);
    hello.magic = 0x474554;
    peer.say(hello);
    EXPECT_TRUE(peer.is_refused());
  });
}

TEST(HostilePeer, ARankThatDoesNotConnectHereIsRefused) {
  survives([](const tcp::Introduction& known) {
    for (const int rank : {-1, 0, 2, 1 << 30}) {
      const RawPeer peer = knock(known);
      peer.say(hello_of(rank));
      EXPECT_TRUE(peer.is_refused()) << rank;
    }
    const RawPeer peer = knock(known);
    tcp::Hello hello = hello_of(1);
    hello.accepting = 1;
    peer.say(hello);
    EXPECT_TRUE(peer.is_refused()) << "a greeting to another rank";
  });
}

void wrong_proof_is_refused() {
  survives([](const tcp::Introduction& known) {
    const RawPeer guesses = knock(known);
    tcp::Secret guess = known.secret;
    guess[15] ^= std::byte{1};
    EXPECT_FALSE(prove_to_be(1, guesses, guess));
  });
}

TEST(HostilePeer, ProofOfAnotherRankOrSideIsRefused) {
  survives([](const tcp::Introduction& known) {
    for (const bool other_side : {false, true}) {
      const RawPeer peer = knock(known);
      const tcp::Hello said = hello_of(1);
      tcp::Hello proven = said;
      if (!other_side) proven.connecting = 2;
      tcp::Challenge challenge{};
      ASSERT_TRUE(peer.say(said) && peer.receive(challenge));
      const auto side = other_side ? tcp::Side::kAccepting : tcp::Side::kConnecting;
      peer.say(tcp::prove(known.secret, side, proven, challenge));
      EXPECT_TRUE(peer.is_refused());
    }
  });
}

void replayed_proof_is_refused() {
  survives([](const tcp::Introduction& known) {
    // All that the right rank would say on one connection, said again on another.
    const tcp::Hello hello = hello_of(1);
    tcp::Challenge first{}, second{};
    const RawPeer recorded = knock(known);
    ASSERT_TRUE(recorded.say(hello) && recorded.receive(first));
    const tcp::Proof proof = tcp::prove(known.secret, tcp::Side::kConnecting, hello, first);
    const RawPeer replaying = knock(known);
    ASSERT_TRUE(replaying.say(hello) && replaying.receive(second));
    EXPECT_NE(first, second);
    replaying.say(proof);
    EXPECT_TRUE(replaying.is_refused());
  });
}

TEST(HostilePeer, SecretOfAnotherRunIsRefused) {
  tcp::Secret before{};
  survives([&](const tcp::Introduction& known) { before = known.secret; });
  survives([&](const tcp::Introduction& known) {
    EXPECT_NE(known.secret, before);
    EXPECT_FALSE(prove_to_be(1, knock(known), before));
  });
}

TEST(HostilePeer, AddressThatIsNotOnTheCardIsRefused) {
  survives([](const tcp::Introduction& known) {
    // With the right secret: 127.0.0.2 is this host's too, but no rank's.
    const RawPeer peer(kOtherLoopback, door_of(known));
    EXPECT_EQ(peer.error(), 0);
    EXPECT_FALSE(prove_to_be(1, peer, known.secret));
  });
}

TEST(HostilePeer, NobodyListensAtOtherAddresses) {
  survives([](const tcp::Introduction& known) {
    const RawPeer peer(kOtherLoopback, {kOtherLoopback, known.cards[0].loopback_port});
    EXPECT_EQ(peer.error(), ECONNREFUSED);
  });
}

void closing_half_way_delays_nobody() {
  survives([](const tcp::Introduction& known) {
    const tcp::Hello hello = hello_of(1);
    const auto whole = std::as_bytes(std::span(&hello, 1));
    for (const std::size_t sent : {std::size_t{0}, std::size_t{1}, whole.size() - 1, whole.size()}) {
      knock(known).send(whole.first(sent));
    }
    const RawPeer peer = knock(known);
    tcp::Challenge challenge{};
    ASSERT_TRUE(peer.say(hello) && peer.receive(challenge));
    const tcp::Proof proof = tcp::prove(known.secret, tcp::Side::kConnecting, hello, challenge);
    peer.send(std::as_bytes(std::span(proof)).first(proof.size() - 1));
  });
}

void a_taken_rank_is_refused_and_the_first_kept() {
  on_bootstraps(
      3,
      [](const std::shared_ptr<Bootstrap>& bootstrap) {
        if (bootstrap->peers().rank == 0) {
          hear_right_ranks(bootstrap);
          return synchronize(*bootstrap);
        }
        // Rank 2 speaks for both, so that rank 0 still listens when rank 1 has its place.
        const tcp::Introduction known = tcp::introduce(*bootstrap, tcp::AddressCard{}, soon());
        if (bootstrap->peers().rank == 1) return synchronize(*bootstrap);
        const RawPeer first = knock(known), second = knock(known), other = knock(known);
        EXPECT_TRUE(prove_to_be(1, first, known.secret));
        EXPECT_FALSE(prove_to_be(1, second, known.secret));
        EXPECT_TRUE(prove_to_be(2, other, known.secret));
        EXPECT_TRUE(first.say(Greeting{.number = 101}));
        EXPECT_TRUE(other.say(Greeting{.number = 102}));
        synchronize(*bootstrap);
      },
      3);
}

/// Rank 0's listening end alone, beside ranks on hosts of their own, whose cards each have one address.
struct Door {
  explicit Door(const std::vector<IpAddress>& others)
      : peers{0, std::vector<std::string>(others.size() + 1, "a"), {0}},
        known{std::vector<tcp::AddressCard>(others.size() + 1), tcp::make_secret()},
        places(peers) {
    set_address(0, kLoopback);
    for (int rank = 1; rank < peers.size(); ++rank) {
      peers.node.push_back(rank);
      set_address(static_cast<std::size_t>(rank), others[static_cast<std::size_t>(rank) - 1]);
    }
    listeners = tcp::open_listeners(peers, known.cards[0]);
    acceptor.emplace(peers, known, listeners, places);
  }
  void set_address(std::size_t rank, const IpAddress& ip) {
    known.cards[rank].count = 1;
    known.cards[rank].addresses[0].ip = ip;
  }
  tcp::Endpoint place() const { return {kLoopback, known.cards[0].addresses[0].port}; }
  void take_turn(int most_ms) {
    std::vector<pollfd> polled;
    acceptor->watch(polled);
    ASSERT_GE(poll(polled.data(), polled.size(), most_ms), 0);
    acceptor->go_on(polled);
  }

  Peers peers;
  tcp::Introduction known;
  tcp::Places places;
  std::vector<tcp::Listener> listeners{};
  std::optional<tcp::Acceptor> acceptor{};
};

/// Whether one who knows the secret is taken for a rank.
bool is_let_in(Door& door, int rank, const IpAddress& from) {
  std::atomic<bool> over{false};
  std::jthread answers([&] {
    while (!over) door.take_turn(1);
  });
  const RawPeer peer(from, door.place());
  EXPECT_EQ(peer.error(), 0);
  const bool taken = prove_to_be(rank, peer, door.known.secret);
  over = true;
  return taken;
}

TEST(HostilePeer, AnAddressOnNobodysCardIsRefusedBetweenHostsToo) {
  Door door({kLoopback});
  EXPECT_FALSE(is_let_in(door, 1, kOtherLoopback));
  EXPECT_THAT(door.acceptor->refused(), HasSubstr("from 127.0.0.2: no rank has that address on its card"));
  EXPECT_TRUE(is_let_in(door, 1, kLoopback));
}

TEST(HostilePeer, TheAddressOfAnotherHostsRankIsRefused) {
  Door door({kLoopback, kOtherLoopback});
  EXPECT_FALSE(is_let_in(door, 2, kLoopback));
  EXPECT_THAT(door.acceptor->refused(), HasSubstr("its address is not on the card of its rank"));
  EXPECT_TRUE(is_let_in(door, 2, kOtherLoopback));
}

TEST(HostilePeer, WhoConnectsComesFromAnAddressOfHisCard) {
  const auto [listener, port] = tcp::listen_at(kLoopback);
  const Descriptor connection = tcp::begin_connecting(kOtherLoopback, {kLoopback, port});
  pollfd coming{listener.get(), POLLIN, 0};
  ASSERT_EQ(poll(&coming, 1, 10'000), 1);
  const auto accepted = tcp::accept_from(listener.get());
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->second, kOtherLoopback);
}

TEST(HostilePeer, NoMoreStrangersWaitThanThereIsRoomFor) {
  Door door({kLoopback});
  std::vector<RawPeer> flood;
  flood.reserve(150);
  for (int i = 0; i < 150; ++i) flood.emplace_back(kLoopback, door.place());
  const auto more_wait = [&] {
    pollfd coming{door.listeners[0].socket.get(), POLLIN, 0};
    return poll(&coming, 1, 0) > 0;
  };
  do {
    door.take_turn(0);
    EXPECT_LE(door.acceptor->pending(), 2 + tcp::Acceptor::kMostStrangers);
  } while (more_wait());
  EXPECT_THAT(door.acceptor->refused(), HasSubstr("the last one from 127.0.0.1"));
}

TEST(HostilePeer, AStrangerHasAShortLimitOfItsOwn) {
  Door door({kLoopback});
  const RawPeer silent(kLoopback, door.place());
  const Deadline came = Clock::now();
  while (door.acceptor->pending() == 0 && Clock::now() < soon()) door.take_turn(10);
  ASSERT_TRUE(door.acceptor->next_limit());
  EXPECT_LE(*door.acceptor->next_limit() - came, std::chrono::seconds{10}) << "of a minute and more";
  while (door.acceptor->pending() > 0 && Clock::now() < came + std::chrono::seconds{60}) door.take_turn(10);
  EXPECT_EQ(door.acceptor->pending(), 0U);
  EXPECT_THAT(door.acceptor->refused(), HasSubstr("it did not prove itself in time"));
}

/// Rank 0 of two is an impostor: it listens where the card says, and answers a proof with `answer` to it.
void expect_unmasked(const std::function<tcp::Proof(const tcp::Proof&)>& answer) {
  std::atomic<bool> done{false};
  const auto pretend = [&](const std::shared_ptr<Bootstrap>& bootstrap) {
    tcp::AddressCard card;
    const std::vector<tcp::Listener> listeners = tcp::open_listeners(bootstrap->peers(), card);
    tcp::introduce(*bootstrap, card, soon());
    while (!done) {
      pollfd waiting{listeners[0].socket.get(), POLLIN, 0};
      if (poll(&waiting, 1, 20) <= 0) continue;
      auto accepted = tcp::accept_from(listeners[0].socket.get());
      if (!accepted) continue;
      tcp::Inbox inbox;
      const auto read = [&](std::size_t length) {
        while (inbox.read(accepted->first.get(), length) == tcp::Inbox::State::kWaiting && !done) {
          pollfd coming{accepted->first.get(), POLLIN, 0};
          poll(&coming, 1, 20);
        }
        return inbox.take();
      };
      read(sizeof(tcp::Hello));
      tcp::send_whole(accepted->first.get(), tcp::make_challenge());
      tcp::Proof proof{};
      std::ranges::copy(read(sizeof proof), proof.begin());
      tcp::send_whole(accepted->first.get(), answer(proof));
    }
  };
  const auto connect = [&](const std::shared_ptr<Bootstrap>& bootstrap) {
    TcpOptions options;
    options.connect_timeout = Seconds{0.5};
    try {
      make_tcp_transport(bootstrap, options);
      ADD_FAILURE() << "it took the impostor for rank 0";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTimeout);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("rank 0 (host local0)"), HasSubstr("does not know the run's secret")));
    }
    done = true;
  };
  on_bootstraps(
      2,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        bootstrap->peers().rank == 0 ? pretend(bootstrap) : connect(bootstrap);
      },
      2);
}

TEST(HostilePeer, AnImpostorWhoListensIsUnmasked) {
  expect_unmasked([](const tcp::Proof&) { return tcp::Proof{}; });
}

TEST(HostilePeer, AnImpostorWhoReflectsTheProofIsUnmasked) {
  expect_unmasked([](const tcp::Proof& shown) { return shown; });
}

TEST(HostilePeer, ARunThatFailsToConnectSaysWhoWasRefused) {
  on_bootstraps(
      2,
      [](const std::shared_ptr<Bootstrap>& bootstrap) {
        if (bootstrap->peers().rank == 1) {
          const tcp::Introduction known = tcp::introduce(*bootstrap, tcp::AddressCard{}, soon());
          const RawPeer peer = knock(known);
          peer.say(hello_of(7));
          return synchronize(*bootstrap);
        }
        TcpOptions options;
        options.connect_timeout = Seconds{1};
        try {
          make_tcp_transport(bootstrap, options);
          ADD_FAILURE() << "nobody has connected";
        } catch (const Error& error) {
          EXPECT_THAT(error.what(),
                      AllOf(HasSubstr("waiting for rank 1"), HasSubstr("1 connection was refused"),
                            HasSubstr("127.0.0.1: no such rank connects here")));
        }
        synchronize(*bootstrap);
      },
      2);
}

// --- once they are connected ----------------------------------------------------------------------------

template <typename Part>
std::vector<std::byte> bytes_of(const Part& part) {
  const auto bytes = std::as_bytes(std::span(&part, 1));
  return {bytes.begin(), bytes.end()};
}

/// The error with which rank 0 ends when rank 1, who has proven itself, sends this and hangs up.
Error error_after(const std::vector<std::byte>& sent, const MessageLimits& limits = {}) {
  std::optional<Error> ended;
  on_bootstraps(
      2,
      [&](const std::shared_ptr<Bootstrap>& bootstrap) {
        if (bootstrap->peers().rank == 1) {
          const tcp::Introduction known = tcp::introduce(*bootstrap, tcp::AddressCard{}, soon());
          const RawPeer peer = knock(known);
          EXPECT_TRUE(prove_to_be(1, peer, known.secret));
          peer.send(sent);
          return;
        }
        const auto transport = make_tcp_transport(bootstrap);
        transport->limit_messages(limits);
        std::array<std::byte, 8> room{};
        transport->receive(1, make_tag(TagSpace::kControl, 9), room);
        try {
          const Deadline until = soon();
          while (Clock::now() < until) transport->wait(until);
        } catch (const Error& error) {
          ended = error;
        }
      },
      2);
  return ended.value_or(Error(ErrorCode::kBadInput, "none"));
}

void a_length_that_nobody_could_allocate_is_refused() {
  const Error error = error_after(bytes_of(tcp::Header{std::uint64_t{1} << 62, kTag, 0}));
  EXPECT_EQ(error.code(), ErrorCode::kConflict);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 1 (host local0)"), HasSubstr("4611686018427387904 B"),
                                  HasSubstr("at most 1048576 B")));
}

TEST(HostileSizes, BeforeRanksAgreeAMessageHasAtMostOneMebibyte) {
  EXPECT_THAT(error_after(bytes_of(tcp::Header{(1 << 20) + 1, kTag, 0})).what(), HasSubstr("1048577 B"));
  // One that is as long is waited for, until its sender hangs up.
  EXPECT_EQ(error_after(bytes_of(tcp::Header{1 << 20, kTag, 0})).code(), ErrorCode::kPeerLost);
}

TEST(HostileSizes, WhatWasAgreedOnIsTheLimit) {
  const MessageLimits agreed{.longest = 2_MiB, .early = 8_MiB};
  EXPECT_EQ(error_after(bytes_of(tcp::Header{2 << 20, kTag, 0}), agreed).code(), ErrorCode::kPeerLost);
  EXPECT_THAT(error_after(bytes_of(tcp::Header{(2 << 20) + 1, kTag, 0}), agreed).what(),
              HasSubstr("at most 2097152 B"));
}

TEST(HostileSizes, WhatComesUnaskedIsBounded) {
  std::vector<std::byte> sent;
  for (int i = 0; i < 5; ++i) {
    const auto header = bytes_of(tcp::Header{1 << 20, kTag, 0});
    sent.insert(sent.end(), header.begin(), header.end());
    sent.resize(sent.size() + (1 << 20));
  }
  const Error error = error_after(sent);
  EXPECT_EQ(error.code(), ErrorCode::kConflict);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 1 (host local0)"), HasSubstr("at most 4194304 B")));
}

TEST(HostileSizes, EmptyMessagesAreBoundedToo) {
  std::vector<std::byte> sent;
  const auto header = bytes_of(tcp::Header{0, kTag, 0});
  for (int i = 0; i <= (4 << 20) / 64; ++i) sent.insert(sent.end(), header.begin(), header.end());
  EXPECT_THAT(error_after(sent).what(), HasSubstr("at most 4194304 B"));
}

TEST(HostileSizes, OneThatHasNoRoomInItsReceiveIsRefused) {
  EXPECT_THAT(error_after(bytes_of(tcp::Header{9, make_tag(TagSpace::kControl, 9), 0})).what(),
              HasSubstr("9 B where at most 8 B were expected"));
}

TEST(HostileSizes, TagsThatNoRankSendsAreRefused) {
  for (const tcp::Header& header :
       {tcp::Header{4, 7U << 28, 0}, tcp::Header{4, make_tag(TagSpace::kReduce, kAnyNumber), 0},
        tcp::Header{4, kTag, 1}}) {
    EXPECT_THAT(error_after(bytes_of(header)).what(), HasSubstr("no such tag is sent"));
  }
}

void closing_half_way_through_a_message_is_a_lost_peer() {
  const auto header = bytes_of(tcp::Header{8, make_tag(TagSpace::kControl, 9), 0});
  for (std::size_t sent = 0; sent < header.size() + 8; sent += 4) {
    std::vector<std::byte> bytes = header;
    bytes.resize(sent);
    EXPECT_EQ(error_after(bytes).code(), ErrorCode::kPeerLost) << sent;
  }
}

void closing_half_way_is_survived() {
  closing_half_way_delays_nobody();
  closing_half_way_through_a_message_is_a_lost_peer();
}

}  // namespace
}  // namespace commtune::tests

namespace commtune::tcp {

const tests::AttackSurface kAttackSurface{
    .silence = tests::a_silent_one_delays_nobody,
    .wrong_magic = tests::wrong_magic_is_refused,
    .wrong_proof = tests::wrong_proof_is_refused,
    .replayed_proof = tests::replayed_proof_is_refused,
    .taken_rank = tests::a_taken_rank_is_refused_and_the_first_kept,
    .oversized_length = tests::a_length_that_nobody_could_allocate_is_refused,
    .closing_half_way = tests::closing_half_way_is_survived,
};

}  // namespace commtune::tcp
