// Two ends of a connection over wires of the test's own: what a card would do is done when the test says so,
// in the order of posting. No RDMA is needed.

#include "executor/transport/verbs/peer_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>

#include "perfmodel/base/error.h"

namespace commtune::verbs {
namespace {

using matching::Envelope;
using ::testing::HasSubstr;

constexpr Tag kTag = make_tag(TagSpace::kReduce, 3);
constexpr std::size_t kReceives = ConnectionSizes::kReceives;

/// Memory that a card was told of, by a key for each registration.
struct TestMemory {
  Region open(std::span<const std::byte> memory) {
    const std::uint32_t key = ++last_key;
    opened[key] = memory;
    return {key, key, std::shared_ptr<const void>(this, [key](const void* of) {
              const_cast<TestMemory*>(static_cast<const TestMemory*>(of))->opened.erase(key);
            })};
  }
  std::map<std::uint32_t, std::span<const std::byte>> opened;
  std::uint32_t last_key = 0;
};

/// A card's end of a connection, whose work is done by deliver().
class TestWire final : public Wire {
 public:
  TestWire(std::size_t slot, TestMemory& memory, std::size_t lane)
      : incoming_(kReceives * slot),
        outgoing_(ConnectionSizes::kFrames * slot),
        slot_(slot),
        memory_(memory),
        lane_(lane) {
    for (std::size_t i = 0; i < kReceives; ++i) posted_.push_back(i);
  }

  std::span<std::byte> outgoing(std::size_t slot) override {
    return std::span(outgoing_).subspan(slot * slot_, slot_);
  }
  std::span<const std::byte> incoming(std::size_t slot) const override {
    return std::span(incoming_).subspan(slot * slot_, slot_);
  }
  void post_receive(std::size_t slot) override { posted_.push_back(slot); }
  void send(WorkNumber number, std::size_t slot, std::size_t bytes, Signal signal) override {
    const auto frame = outgoing(slot).first(bytes);
    work_.push_back(
        {number, {frame.begin(), frame.end()}, {}, 0, 0, std::nullopt, signal == Signal::kYes, true});
  }
  void write(WorkNumber number, std::span<const std::byte> data, std::uint32_t local_key,
             std::uint64_t address, std::uint32_t key, const Immediate* immediate, Signal signal) override {
    EXPECT_TRUE(data.empty() || memory_.opened.contains(local_key)) << "the card may not read this";
    work_.push_back({number,
                     {},
                     data,
                     address,
                     key,
                     immediate ? std::optional(*immediate) : std::nullopt,
                     signal == Signal::kYes,
                     false});
  }
  Region readable(std::span<const std::byte> memory) override { return memory_.open(memory); }
  Region writable(std::span<std::byte> memory) override { return memory_.open(memory); }

  std::size_t registered() const { return memory_.opened.size(); }
  bool is_idle() const { return work_.empty(); }

  /// Does the oldest piece of work: what the peer's connection and then the own one are told of it.
  void deliver(PeerConnection& own, TestWire& peer_wire, PeerConnection& peer) {
    const Work work = std::move(work_.front());
    work_.pop_front();
    if (work.frame) {
      const std::size_t slot = peer_wire.take_receive();
      std::memcpy(peer_wire.incoming_.data() + slot * slot_, work.bytes.data(), work.bytes.size());
      peer.on_frame(slot, work.bytes.size());
    } else if (!work.data.empty()) {
      const auto place = peer_wire.memory_.opened.find(work.key);
      ASSERT_NE(place, peer_wire.memory_.opened.end()) << "the peer has not registered this";
      // What a grant carries is an address, as a card is told it.
      auto* const to = reinterpret_cast<std::byte*>(work.address);  // NOLINT(performance-no-int-to-ptr)
      ASSERT_GE(to, place->second.data());
      ASSERT_LE(to + work.data.size(), place->second.data() + place->second.size());
      std::memcpy(to, work.data.data(), work.data.size());
    }
    if (work.immediate) peer.on_written(lane_, peer_wire.take_receive(), *work.immediate);
    if (work.signalled) own.on_sent(lane_, work.number);
  }

 private:
  struct Work {
    WorkNumber number;
    std::vector<std::byte> bytes;
    std::span<const std::byte> data;
    std::uint64_t address;
    std::uint32_t key;
    std::optional<Immediate> immediate;
    bool signalled, frame;
  };
  std::size_t take_receive() {
    if (posted_.empty()) throw std::runtime_error("the receive queue is dry");
    const std::size_t slot = posted_.front();
    posted_.pop_front();
    return slot;
  }

  std::vector<std::byte> incoming_, outgoing_;
  std::size_t slot_;
  std::deque<std::size_t> posted_;
  std::deque<Work> work_;
  TestMemory& memory_;
  std::size_t lane_;
};

struct ConnectionEnd {
  ConnectionEnd(int rank, const ConnectionSizes& sizes)
      : peers{rank, {"a", "b"}, {0, 1}},
        wires(wires_of(sizes)),
        wire(*wires.front()),
        connection(wires_of(wires), transfers, peers, limits, sizes, 1 - rank) {}
  std::vector<std::unique_ptr<TestWire>> wires_of(const ConnectionSizes& sizes) {
    std::vector<std::unique_ptr<TestWire>> made;
    made.reserve(sizes.connections);
    for (std::size_t lane = 0; lane < sizes.connections; ++lane)
      made.push_back(std::make_unique<TestWire>(sizes.slot(), memory, lane));
    return made;
  }
  static std::vector<Wire*> wires_of(const std::vector<std::unique_ptr<TestWire>>& of) {
    std::vector<Wire*> all;
    all.reserve(of.size());
    for (const auto& each : of) all.push_back(each.get());
    return all;
  }
  TransferId send(std::span<const std::byte> data, Tag tag = kTag) {
    const TransferId id = transfers.open(const_cast<std::byte*>(data.data()), data.size(), tag);
    connection.send(id);
    connection.pump();
    return id;
  }
  TransferId receive(std::span<std::byte> data, Tag tag = kTag) {
    const TransferId id = transfers.open(data.data(), data.size(), tag);
    connection.receive(id);
    connection.pump();
    return id;
  }
  std::size_t ended() {
    transfers.release_reported();
    return transfers.report().size();
  }

  Peers peers;
  MessageLimits limits{.longest = 4_MiB, .early = 64_MiB};
  matching::Transfers transfers;
  TestMemory memory;
  std::vector<std::unique_ptr<TestWire>> wires;
  TestWire& wire;
  PeerConnection connection;
};

proof::Proof proof_of(int rank) {
  proof::Proof proof{};
  proof.fill(static_cast<std::byte>(rank + 1));
  return proof;
}

/// Rank 0 and rank 1.
struct Couple {
  explicit Couple(const ConnectionSizes& chosen = {}) : sizes(chosen), a(0, chosen), b(1, chosen) {
    a.connection.introduce(proof_of(0), proof_of(1));
    b.connection.introduce(proof_of(1), proof_of(0));
    settle();
  }
  /// Does a piece of work on that connection, or on the next that has one.
  bool step(bool from_a, std::size_t lane = 0) {
    ConnectionEnd& from = from_a ? a : b;
    ConnectionEnd& to = from_a ? b : a;
    for (std::size_t i = 0; i < sizes.connections; ++i) {
      const std::size_t index = (lane + i) % sizes.connections;
      if (from.wires[index]->is_idle()) continue;
      from.wires[index]->deliver(from.connection, *to.wires[index], to.connection);
      a.connection.pump();
      b.connection.pump();
      return true;
    }
    return false;
  }
  void settle() {
    while (step(true) || step(false)) {
    }
  }
  ConnectionSizes sizes;
  ConnectionEnd a, b;
};

std::vector<std::byte> pattern(std::size_t size, int seed = 0) {
  std::vector<std::byte> data(size);
  for (std::size_t i = 0; i < size; ++i)
    data[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed) + i / 251);
  return data;
}

TEST(PeerConnection, ProvesItselfFirst) {
  const Couple couple;
  EXPECT_TRUE(couple.a.connection.is_proven());
  EXPECT_TRUE(couple.b.connection.is_proven());
}

TEST(PeerConnection, ALongMessageIsNotCopied) {
  Couple couple;
  const auto out = pattern(3'000'000);
  std::vector<std::byte> in(out.size());
  couple.b.receive(in);
  couple.a.send(out);
  couple.settle();
  EXPECT_EQ(in, out);
  EXPECT_EQ(couple.a.ended(), 1U);
  EXPECT_EQ(couple.b.ended(), 1U);
  EXPECT_EQ(couple.a.connection.copied_bytes() + couple.b.connection.copied_bytes(), 0U);
  EXPECT_EQ(couple.a.wire.registered() + couple.b.wire.registered(), 0U) << "nothing stays registered";
}

TEST(PeerConnection, ALongMessageBeforeItsReceiveStaysWhereItIs) {
  Couple couple;
  const auto out = pattern(100'000);
  couple.a.send(out);
  couple.settle();
  EXPECT_EQ(couple.a.ended(), 0U);
  std::vector<std::byte> in(out.size());
  couple.b.receive(in, make_tag(TagSpace::kReduce, kAnyNumber));
  couple.settle();
  EXPECT_EQ(in, out);
  EXPECT_EQ(couple.b.connection.copied_bytes(), 0U);
  EXPECT_EQ(couple.a.ended(), 1U);
}

TEST(PeerConnection, AShortMessageEndsWhenItIsCopied) {
  Couple couple;
  auto out = pattern(4096);
  couple.a.send(out);
  EXPECT_EQ(couple.a.ended(), 1U);
  const auto sent = std::exchange(out, std::vector<std::byte>(4096));  // the sender may write there again
  couple.settle();
  std::vector<std::byte> in(4096);
  couple.b.receive(in);
  EXPECT_EQ(in, sent);
}

TEST(PeerConnection, AnyCrowdOfMessagesArrivesWholeAndInOrder) {
  // More than there are credits, frames and receives, of sizes on either side of both limits, in both
  // directions, with receives before and after, and deliveries in any order between the two directions, and
  // between connections.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Couple couple({.eager = 256, .chunk = 1000, .connections = 1 + seed % 4});
    constexpr std::size_t kCount = 700;
    std::array<std::vector<std::vector<std::byte>>, 2> out, in;
    const auto tag = [](std::size_t i) {
      return make_tag(TagSpace::kReduce, static_cast<std::uint32_t>(i % 5));
    };
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t i = 0; i < kCount; ++i) {
        out[side].push_back(
            pattern(random() % 8 == 0 ? random() % 9000 : random() % 300, static_cast<int>(i)));
        in[side].emplace_back(out[side][i].size());
      }
    }
    std::array<std::size_t, 2> sent{}, asked{}, ended{};
    const auto count_ended = [&] {
      ended[0] += couple.a.ended();
      ended[1] += couple.b.ended();
    };
    while (sent[0] + sent[1] + asked[0] + asked[1] < 4 * kCount) {
      const std::size_t side = random() % 2;
      ConnectionEnd& end = side == 0 ? couple.a : couple.b;
      switch (random() % 3) {
        case 0:
          if (sent[side] < kCount) end.send(out[side][sent[side]], tag(sent[side])), ++sent[side];
          break;
        case 1:
          if (asked[side] < kCount) end.receive(in[1 - side][asked[side]], tag(asked[side])), ++asked[side];
          break;
        default:
          for (std::uint64_t i = random() % 20; i > 0; --i) couple.step(random() % 2 == 0, random() % 4);
      }
      count_ended();
    }
    couple.settle();
    count_ended();
    EXPECT_EQ(ended[0], 2 * kCount);
    EXPECT_EQ(ended[1], 2 * kCount);
    EXPECT_TRUE(in == out) << "seed " << seed;
    EXPECT_EQ(couple.a.wire.registered() + couple.b.wire.registered(), 0U);
  }
}

TEST(PeerConnection, ALargeMessageEndsWithItsLastPartOnWhicheverConnection) {
  Couple couple({.connections = 4});
  const auto out = pattern(4 * ConnectionSizes::kLeastPart + 3);
  std::vector<std::byte> in(out.size());
  couple.b.receive(in);
  couple.a.send(out);
  while (couple.step(true) || couple.step(false)) {
    const std::size_t busy = static_cast<std::size_t>(
        std::ranges::count_if(couple.a.wires, [](const auto& wire) { return !wire->is_idle(); }));
    if (busy == 4) break;
  }
  for (std::size_t lane = 4; lane-- > 0;) {
    EXPECT_EQ(couple.b.ended(), 0U) << "the parts of connections up to " << lane << " have not come";
    couple.step(true, lane);
  }
  couple.settle();
  EXPECT_EQ(couple.a.ended(), 1U);
  EXPECT_EQ(couple.b.ended(), 1U);
  EXPECT_EQ(in, out);
  EXPECT_EQ(couple.a.connection.copied_bytes() + couple.b.connection.copied_bytes(), 0U);
}

TEST(PeerConnection, NoConnectionRunsDryOfReceives) {
  // Far more messages at once than there are receives, each on a connection in turn; the wire throws where
  // one finds none.
  Couple couple({.eager = 256, .connections = 2});
  const auto out = pattern(1000);
  std::vector<std::vector<std::byte>> in(5 * kReceives, std::vector<std::byte>(out.size()));
  for (auto& each : in) couple.b.receive(each);
  for (std::size_t i = 0; i < in.size(); ++i) couple.a.send(out);
  couple.settle();
  EXPECT_EQ(couple.b.ended(), in.size());
  for (const auto& each : in) EXPECT_EQ(each, out);
}

TEST(PeerConnection, ALookTellsOfAllWorkBeforeIt) {
  Couple couple;
  couple.a.send(pattern(10));
  couple.settle();
  EXPECT_FALSE(couple.a.connection.is_flushed()) << "one message alone is not signalled";
  couple.a.connection.look();
  couple.settle();
  EXPECT_TRUE(couple.a.connection.is_flushed());
}

TEST(PeerConnection, APeerThatLeavesInTheMiddleIsLost) {
  Couple couple;
  std::vector<std::byte> in(10);
  couple.b.receive(in);
  couple.a.connection.leave();
  try {
    couple.settle();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_THAT(error.what(), HasSubstr("rank 0 (host a)"));
  }
}

TEST(PeerConnection, APeerThatEndsTheRunSaysWhy) {
  for (const std::size_t length : {std::size_t{9}, std::size_t{10'000}}) {
    Couple couple;
    const std::string why(length, 'y');
    couple.a.connection.leave(why);
    EXPECT_FALSE(couple.a.connection.is_told());
    try {
      couple.settle();
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
      EXPECT_EQ(error.what(), "rank 0 (host a) ended the run: " + why.substr(0, ConnectionSizes{}.eager));
    }
    EXPECT_THROW(couple.b.connection.check_open(), Error);
  }
}

TEST(PeerConnection, APeerThatLeavesAfterwardsIsNot) {
  Couple couple;
  couple.a.send(pattern(10));
  couple.a.connection.leave();
  couple.settle();
  std::vector<std::byte> in(10);
  couple.b.receive(in);
  EXPECT_EQ(in, pattern(10)) << "what it sent before is there";
  EXPECT_THROW(couple.b.receive(in), Error);
  EXPECT_THROW(couple.b.connection.check_open(), Error);
}

TEST(PeerConnection, AMessageLongerThanItsReceiveIsRefused) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{100'000}}) {
    Couple couple;
    std::vector<std::byte> in(50);
    const auto out = pattern(size);
    couple.b.receive(in);
    couple.a.send(out);
    EXPECT_THROW(couple.settle(), Error) << size;
  }
}

/// What rank 1 is told when rank 0 sends this frame.
std::string refusal_of(const FrameHeader& header, std::size_t more = 0, bool proven = true) {
  const ConnectionSizes sizes;
  ConnectionEnd b(1, sizes);
  TestMemory memory;
  TestWire attacker(sizes.slot(), memory, 0);
  ConnectionEnd shown(0, sizes);
  b.connection.introduce(proof_of(1), proof_of(0));
  try {
    if (proven) {
      shown.connection.introduce(proof_of(0), proof_of(1));
      shown.wire.deliver(shown.connection, b.wire, b.connection);
    }
    std::memcpy(attacker.outgoing(0).data(), &header, sizeof header);
    attacker.send(1, 0, sizeof header + more, Signal::kNo);
    attacker.deliver(shown.connection, b.wire, b.connection);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConflict);
    EXPECT_THAT(error.what(), HasSubstr("rank 0 (host a)"));
    return error.what();
  }
  return "";
}

TEST(HostileVerbsPeer, NothingIsTakenBeforeTheProof) {
  EXPECT_THAT(refusal_of({.kind = FrameKind::kMessage, .envelope = {4, kTag}}, 4, false),
              HasSubstr("has not proven"));
  EXPECT_THAT(refusal_of({.kind = FrameKind::kProof}, sizeof(proof::Proof), false), HasSubstr("secret"));
}

TEST(HostileVerbsPeer, FramesThatNoRankSendsAreRefused) {
  EXPECT_EQ(refusal_of({.kind = FrameKind::kMessage, .envelope = {4, kTag}}, 4), "");
  EXPECT_THAT(refusal_of({.kind = FrameKind::kProof}, sizeof(proof::Proof)), HasSubstr("twice"));
  EXPECT_THAT(refusal_of({.kind = FrameKind::kMessage, .envelope = {5, kTag}}, 4), HasSubstr("length"));
  EXPECT_THAT(refusal_of({.kind = FrameKind::kMessage, .envelope = {4, 0xf0000001}}, 4), HasSubstr("tag"));
  EXPECT_THAT(refusal_of({.kind = FrameKind::kAnnounce, .envelope = {4, kTag}}), HasSubstr("announced"));
  EXPECT_THAT(refusal_of({.kind = FrameKind::kAnnounce, .envelope = {std::uint64_t{1} << 40, kTag}}),
              HasSubstr("must be at most"));
  EXPECT_THAT(refusal_of({.kind = FrameKind::kGrant, .send = 0}), HasSubstr("not announced"));
  EXPECT_THAT(refusal_of({.kind = FrameKind::kCredits, .credits = 1000}), HasSubstr("more credits"));
  EXPECT_EQ(what_is_wrong({.kind = FrameKind::kLeave}, sizeof(FrameHeader) + 4097, 4096),
            "its reason is too long");
  EXPECT_THAT(refusal_of({.kind = static_cast<FrameKind>(77)}), HasSubstr("no such frame"));
}

TEST(HostileVerbsPeer, AWriteThatWasNotGrantedIsRefused) {
  Couple couple;
  EXPECT_THROW(couple.b.connection.on_written(0, 0, 12345), Error);
}

TEST(HostileVerbsPeer, AGrantOfConnectionsThatThereAreNotIsRefused) {
  for (const int connections : {0, 2, 255}) {
    Couple couple;
    const auto out = pattern(10'000);
    const TransferId id = couple.a.send(out);
    couple.settle();
    FrameHeader header{.kind = FrameKind::kGrant, .send = id};
    header.connections = static_cast<ConnectionSet>(connections);
    std::memcpy(couple.b.wire.outgoing(0).data(), &header, sizeof header);
    couple.b.wire.send(1, 0, sizeof header, Signal::kNo);
    EXPECT_THROW(couple.settle(), Error) << connections;
  }
}

TEST(HostileVerbsPeer, AMessageOfEachEarlyFrameIsCounted) {
  Couple couple;
  couple.b.limits.early = Bytes{1000};
  const auto out = pattern(10);
  try {
    for (int i = 0; i < 100; ++i) couple.a.send(out);
    couple.settle();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("before they were asked for"));
  }
}

}  // namespace
}  // namespace commtune::verbs
