#include "tests/executor/transport/conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <thread>

#include "executor/transport/communicator.h"

namespace commtune::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>((i * 131 + static_cast<std::size_t>(seed) * 29 + i / 251) & 0xff);
  }
  return data;
}

std::span<const std::byte> bytes_of(const int& value) { return std::as_bytes(std::span(&value, 1)); }
std::span<std::byte> bytes_of(int& value) { return std::as_writable_bytes(std::span(&value, 1)); }

int next_of(const Peers& peers) { return (peers.rank + 1) % peers.size(); }
int previous_of(const Peers& peers) { return (peers.rank + peers.size() - 1) % peers.size(); }

void knows_its_peers(Transport& transport) {
  const Peers& peers = transport.peers();
  EXPECT_GE(peers.rank, 0);
  EXPECT_LT(peers.rank, peers.size());
  EXPECT_EQ(peers.node.size(), peers.hosts.size());
  for (const std::string& host : peers.hosts) EXPECT_FALSE(host.empty());
  EXPECT_FALSE(transport.name().empty());
}

void moves_every_size(Transport& transport) {
  // Around the sizes at which libraries switch protocols, nothing at all, and as much as ranks agree on.
  const Peers& peers = transport.peers();
  for (const std::size_t bytes : {0UL, 1UL, 4UL, 4096UL, 65536UL, 65537UL, 1UL << 20, (3UL << 20) + 7,
                                  std::size_t{kConformanceLimits.longest.count}}) {
    const auto out = pattern(bytes, peers.rank);
    std::vector<std::byte> in(bytes);
    const Tag tag = make_tag(TagSpace::kReduce, 5);
    const TransferId receive = transport.receive(previous_of(peers), tag, in);
    const TransferId send = transport.send(next_of(peers), tag, out);
    for (const Completion& completion : wait_for(transport, 2)) {
      EXPECT_TRUE(completion.transfer == receive || completion.transfer == send);
      EXPECT_EQ(completion.bytes, bytes);
      EXPECT_EQ(completion.tag, tag);
    }
    EXPECT_EQ(in, pattern(bytes, previous_of(peers))) << bytes << " B";
  }
}

void keeps_the_order_of_one_tag(Transport& transport) {
  const Peers& peers = transport.peers();
  constexpr int kCount = 50;
  const Tag tag = make_tag(TagSpace::kReduce, 0);
  std::vector<int> out(kCount);
  std::vector<int> in(kCount, -1);
  for (int i = 0; i < kCount; ++i) out[static_cast<std::size_t>(i)] = i;
  for (int& value : in) transport.receive(previous_of(peers), tag, bytes_of(value));
  for (const int& value : out) transport.send(next_of(peers), tag, bytes_of(value));
  wait_for(transport, std::size_t{2} * kCount);
  EXPECT_EQ(in, out);
}

void matches_tags_and_channels_apart(Transport& transport) {
  const Peers& peers = transport.peers();
  const int a = 1;
  const int b = 2;
  const int c = 3;
  int from_a = 0;
  int from_b = 0;
  int from_c = 0;
  // Received in another order than sent, and the same number on two channels.
  transport.send(next_of(peers), make_tag(TagSpace::kReduce, 1), bytes_of(a));
  transport.send(next_of(peers), make_tag(TagSpace::kReduce, 2), bytes_of(b));
  transport.send(next_of(peers), make_tag(TagSpace::kDistribute, 1), bytes_of(c));
  transport.receive(previous_of(peers), make_tag(TagSpace::kDistribute, 1), bytes_of(from_c));
  transport.receive(previous_of(peers), make_tag(TagSpace::kReduce, 2), bytes_of(from_b));
  transport.receive(previous_of(peers), make_tag(TagSpace::kReduce, 1), bytes_of(from_a));
  wait_for(transport, 6);
  EXPECT_EQ(from_a, a);
  EXPECT_EQ(from_b, b);
  EXPECT_EQ(from_c, c);
}

void any_number_takes_what_comes_next_on_its_channel(Transport& transport) {
  const Peers& peers = transport.peers();
  const int other = 9;
  int got_other = 0;
  std::vector<int> in(3, -1);
  std::map<TransferId, std::size_t> position;
  transport.receive(previous_of(peers), make_tag(TagSpace::kDistribute, 7), bytes_of(got_other));
  for (std::size_t i = 0; i < in.size(); ++i) {
    const TransferId id =
        transport.receive(previous_of(peers), make_tag(TagSpace::kReduce, kAnyNumber), bytes_of(in[i]));
    position[id] = i;
  }
  transport.send(next_of(peers), make_tag(TagSpace::kDistribute, 7), bytes_of(other));
  const std::vector<int> out = {70, 30, 50};
  for (const int& value : out) {
    transport.send(next_of(peers), make_tag(TagSpace::kReduce, static_cast<std::uint32_t>(value)),
                   bytes_of(value));
  }
  std::size_t seen = 0;
  for (const Completion& completion : wait_for(transport, 8)) {
    const auto found = position.find(completion.transfer);
    if (found == position.end() || completion.bytes != sizeof(int)) continue;
    if (tag_space_of(completion.tag) != TagSpace::kReduce) continue;
    ++seen;
    EXPECT_EQ(number_of(completion.tag), static_cast<std::uint32_t>(out[found->second]));
  }
  EXPECT_EQ(seen, 3U);
  EXPECT_EQ(in, out);
  EXPECT_EQ(got_other, other);
}

void a_receive_may_have_room_to_spare(Transport& transport) {
  const Peers& peers = transport.peers();
  const auto out = pattern(100, peers.rank);
  std::vector<std::byte> in(4096);
  const Tag tag = make_tag(TagSpace::kReduce, 3);
  const TransferId receive = transport.receive(previous_of(peers), tag, in);
  transport.send(next_of(peers), tag, out);
  for (const Completion& completion : wait_for(transport, 2)) {
    if (completion.transfer == receive) {
      EXPECT_EQ(completion.bytes, 100U);
    }
  }
  in.resize(100);
  EXPECT_EQ(in, pattern(100, previous_of(peers)));
}

void early_messages_wait_for_their_receives(Transport& transport) {
  const Peers& peers = transport.peers();
  constexpr std::array<std::size_t, 4> kSizes{0, 1000, 100'000, 1'000'000};
  const Tag told = make_tag(TagSpace::kControl, 1);
  std::byte token{}, heard{};
  std::vector<std::vector<std::byte>> out, in;
  const TransferId hears = transport.receive(previous_of(peers), told, std::span(&heard, 1));
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    out.push_back(pattern(kSizes.at(i), peers.rank + static_cast<int>(i)));
    in.emplace_back(kSizes.at(i));
    transport.send(next_of(peers), make_tag(TagSpace::kReduce, static_cast<std::uint32_t>(i)), out[i]);
  }
  transport.send(next_of(peers), told, std::span(&token, 1));
  // What the other rank has sent before it told so has come, or waits at its sender: nothing asks for it yet.
  std::size_t ended = 0;
  for (bool has_heard = false; !has_heard && !::testing::Test::HasFailure();) {
    const std::vector<Completion> more = wait_for(transport, 1);
    ended += more.size();
    has_heard = std::ranges::find(more, hears, &Completion::transfer) != more.end();
  }
  for (std::size_t i = kSizes.size(); i-- > 0;)
    transport.receive(previous_of(peers), make_tag(TagSpace::kReduce, static_cast<std::uint32_t>(i)), in[i]);
  wait_for(transport, 2 * kSizes.size() + 2 - ended);
  for (std::size_t i = 0; i < kSizes.size(); ++i)
    EXPECT_EQ(in[i], pattern(kSizes.at(i), previous_of(peers) + static_cast<int>(i))) << kSizes.at(i) << " B";
}

void tells_what_came_early_or_never_does(Transport& transport) {
  const Peers& peers = transport.peers();
  const Tag told = make_tag(TagSpace::kControl, 1);
  const Tag stream = make_tag(TagSpace::kReduce, 5 + kLaneNumbers);  // of message 5
  std::byte token{}, heard{}, out{}, in{};
  transport.receive(previous_of(peers), told, std::span(&heard, 1));
  transport.send(next_of(peers), stream, std::span(&out, 1));
  transport.send(next_of(peers), told, std::span(&token, 1));
  wait_for(transport, 3);
  const bool tells = transport.came_early(TagSpace::kReduce, 5);
  if (transport.name() == "tcp" || transport.name() == "verbs" || transport.name() == "local") {
    EXPECT_TRUE(tells);
  }
  EXPECT_FALSE(transport.came_early(TagSpace::kReduce, 6));
  EXPECT_FALSE(transport.came_early(TagSpace::kDistribute, 5));
  transport.receive(previous_of(peers), stream, std::span(&in, 1));
  wait_for(transport, 1);
  EXPECT_FALSE(transport.came_early(TagSpace::kReduce, 5));
}

void many_transfers_with_everybody(Transport& transport) {
  const Peers& peers = transport.peers();
  constexpr int kEach = 40;
  const auto count = static_cast<std::size_t>(peers.size() - 1) * kEach;
  std::vector<std::vector<std::byte>> out;
  std::vector<std::vector<std::byte>> in;
  std::vector<int> sender;
  for (int peer = 0; peer < peers.size(); ++peer) {
    if (peer == peers.rank) continue;
    for (int i = 0; i < kEach; ++i) {
      const std::size_t bytes = static_cast<std::size_t>(i) * 3000;
      out.push_back(pattern(bytes, peers.rank + i));
      in.emplace_back(bytes);
      sender.push_back(peer);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Tag tag = make_tag(TagSpace::kReduce, static_cast<std::uint32_t>(i % kEach));
    transport.receive(sender[i], tag, in[i]);
    transport.send(sender[i], tag, out[i]);
  }
  wait_for(transport, 2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(in[i], pattern(in[i].size(), sender[i] + static_cast<int>(i % kEach)));
  }
}

void a_crowd_of_any_sizes(Transport& transport) {
  // Small ones, which may travel together, between some that fill sockets; half of them come before their
  // receive.
  const Peers& peers = transport.peers();
  constexpr std::uint32_t kCount = 600;
  const auto size = [](std::uint32_t i) { return i % 50 == 49 ? 100'000 + i : i * 7919 % 1500; };
  std::vector<std::vector<std::byte>> out, in;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    out.push_back(pattern(size(i), peers.rank + static_cast<int>(i)));
    in.emplace_back(size(i));
  }
  const auto receive_those = [&](std::uint32_t rest) {
    for (std::uint32_t i = rest; i < kCount; i += 2)
      transport.receive(previous_of(peers), make_tag(TagSpace::kReduce, i), in[i]);
  };
  receive_those(0);
  for (std::uint32_t i = 0; i < kCount; ++i)
    transport.send(next_of(peers), make_tag(TagSpace::kReduce, i), out[i]);
  const std::size_t ended = wait_for(transport, kCount / 2).size();
  receive_those(1);
  wait_for(transport, std::size_t{2} * kCount - ended);
  for (std::uint32_t i = 0; i < kCount; ++i)
    EXPECT_EQ(in[i], pattern(size(i), previous_of(peers) + static_cast<int>(i))) << "message " << i;
}

void wait_ends_at_its_deadline(Transport& transport) {
  synchronize(transport);
  const auto start = Clock::now();
  const auto deadline = start + milliseconds(20);
  int waits = 0;
  do {
    EXPECT_TRUE(transport.wait(deadline).empty());
    ++waits;
  } while (Clock::now() < deadline);
  // What a rank sends that is already past this case may end a wait: its message's head, and its bytes.
  EXPECT_LE(waits, 1 + 2 * (transport.peers().size() - 1));
  EXPECT_TRUE(transport.wait(start).empty());  // in the past: polls
  synchronize(transport);
}

void wake_ends_a_wait(Transport& transport) {
  // Before the wait begins, and while it sleeps.
  transport.wake();
  const auto start = Clock::now();
  EXPECT_TRUE(transport.wait(start + seconds(200)).empty());
  EXPECT_LT(Clock::now() - start, seconds(100));
  const auto again = Clock::now();
  std::jthread other([&] { transport.wake(); });
  EXPECT_TRUE(transport.wait(again + seconds(200)).empty());
  EXPECT_LT(Clock::now() - again, seconds(100));
}

void an_answer_lands_on_its_question(Transport& transport) {
  // The receive of the answer is posted on the memory that the question is sent from.
  const Peers& peers = transport.peers();
  if (peers.rank == 0) {
    std::vector<std::byte> sum(1 << 20);
    for (int peer = 1; peer < peers.size(); ++peer) {
      transport.receive(peer, make_tag(TagSpace::kReduce, 1), sum);
      wait_for(transport, 1);
      std::reverse(sum.begin(), sum.end());
      transport.send(peer, make_tag(TagSpace::kDistribute, 1), sum);
      wait_for(transport, 1);
    }
    return;
  }
  auto data = pattern(1 << 20, peers.rank);
  transport.receive(0, make_tag(TagSpace::kDistribute, 1), data);
  transport.send(0, make_tag(TagSpace::kReduce, 1), data);
  wait_for(transport, 2);
  std::reverse(data.begin(), data.end());
  EXPECT_EQ(data, pattern(1 << 20, peers.rank));
}

void registered_memory_carries_transfers(Transport& transport) {
  const Peers& peers = transport.peers();
  constexpr std::size_t kPart = std::size_t{256} << 10;
  constexpr std::uint32_t kParts = 4;
  std::vector<std::byte> out = pattern(kPart * kParts, peers.rank), in(kPart * kParts);
  for (int use = 0; use < 2; ++use) {  // it may be told of again what it has been told to forget
    transport.register_memory(out);
    transport.register_memory(in);
    for (std::uint32_t i = 0; i < kParts; ++i) {
      const Tag tag = make_tag(TagSpace::kReduce, i);
      transport.receive(previous_of(peers), tag, std::span(in).subspan(i * kPart, kPart));
      transport.send(next_of(peers), tag, std::span(out).subspan(i * kPart, kPart));
    }
    wait_for(transport, std::size_t{2} * kParts);
    transport.unregister_memory(in);
    transport.unregister_memory(out);
    EXPECT_EQ(in, pattern(in.size(), previous_of(peers)));
    std::ranges::fill(in, std::byte{});
  }
}

void has_one_set_of_traits_that_holds(Transport& transport) {
  const Peers& peers = transport.peers();
  const TransferTraits traits = transport.traits();
  EXPECT_FALSE(traits.assumed);
  EXPECT_GT(traits.uncut.count, 0U);
  EXPECT_GE(traits.chunk.count, traits.uncut.count);
  EXPECT_LE(traits.chunk.count, MessageLimits{}.longest.count)
      << "longer than ranks may send before they agree";
  EXPECT_GE(traits.cuts, 1);
  EXPECT_GE(traits.window, 1);
  EXPECT_LE(traits.window, 16);
  // The same on all ranks.
  const std::array<std::uint64_t, 4> own{traits.chunk.count, traits.uncut.count,
                                         static_cast<std::uint64_t>(traits.cuts),
                                         static_cast<std::uint64_t>(traits.window)};
  std::vector<std::array<std::uint64_t, 4>> all(peers.hosts.size(), own);
  for (int peer = 0; peer < peers.size(); ++peer) {
    if (peer == peers.rank) continue;
    const Tag tag = make_tag(TagSpace::kControl, 2);
    transport.receive(peer, tag, std::as_writable_bytes(std::span(all[static_cast<std::size_t>(peer)])));
    transport.send(peer, tag, std::as_bytes(std::span(own)));
  }
  wait_for(transport, 2 * (all.size() - 1));
  for (const auto& each : all) EXPECT_EQ(each, own);
  // A pipeline as long as it may be: receives posted for a window ahead, and always one more.
  const auto window = static_cast<std::uint32_t>(traits.window);
  const std::uint32_t chunks = 3 * window;
  const auto out = pattern(chunks * traits.chunk.count, peers.rank);
  std::vector<std::byte> in(out.size());
  const auto chunk_of = [&](auto& data, std::uint32_t i) {
    return std::span(data).subspan(i * traits.chunk.count, traits.chunk.count);
  };
  std::uint32_t posted = 0, sent = 0;
  const auto post = [&] {
    transport.receive(previous_of(peers), make_tag(TagSpace::kReduce, posted), chunk_of(in, posted));
    ++posted;
  };
  const auto send = [&] {
    transport.send(next_of(peers), make_tag(TagSpace::kReduce, sent), chunk_of(out, sent));
    ++sent;
  };
  for (std::uint32_t i = 0; i < window; ++i) post();
  for (std::uint32_t i = 0; i < window; ++i) send();
  for (std::size_t ended = 0; ended < std::size_t{2} * chunks && !::testing::Test::HasFailure();) {
    for (std::size_t more = wait_for(transport, 1).size(); more > 0; --more, ++ended) {
      if (posted < chunks) post();
      if (sent < posted) send();
    }
  }
  EXPECT_EQ(in, pattern(in.size(), previous_of(peers)));
}

void a_time_out_names_peer_and_tag(Transport& transport) {
  const Peers& peers = transport.peers();
  const Tag late = make_tag(TagSpace::kReduce, 77), go_on = make_tag(TagSpace::kControl, 3);
  std::array<std::byte, 8> data{};
  std::byte word{};
  if (peers.rank == 0) {
    try {
      Communicator communicator(transport);
      const auto take = [&]() -> Task { co_await communicator.receive(1, late, Buffer(data.data(), 8)); };
      communicator.run(take(), Clock::now() + milliseconds(20));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTimeout);
      EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("receiving from " + describe(peers, 1)),
                                                 ::testing::HasSubstr("channel 1, number 77")));
    }
    // The transport is none the worse for it: what was late comes.
    transport.send(1, go_on, std::span(&word, 1));
    wait_for(transport, 2);
    EXPECT_EQ(data.back(), std::byte{77});
  } else if (peers.rank == 1) {
    transport.receive(0, go_on, std::span(&word, 1));
    wait_for(transport, 1);
    data.fill(std::byte{77});
    transport.send(0, late, data);
    wait_for(transport, 1);
  }
}

}  // namespace

std::vector<Completion> wait_for(Transport& transport, std::size_t count) {
  std::vector<Completion> ended;
  const auto deadline = Clock::now() + seconds(200);
  while (ended.size() < count) {
    const auto more = transport.wait(deadline);
    ended.insert(ended.end(), more.begin(), more.end());
    if (Clock::now() >= deadline) {
      ADD_FAILURE() << "rank " << transport.peers().rank << ": " << ended.size() << " of " << count
                    << " ended";
      break;
    }
  }
  return ended;
}

void synchronize(Transport& transport) {
  const Peers& peers = transport.peers();
  std::byte out{};
  std::vector<std::byte> in(static_cast<std::size_t>(peers.size()));
  const Tag tag = make_tag(TagSpace::kControl, 0);
  for (int peer = 0; peer < peers.size(); ++peer) {
    if (peer == peers.rank) continue;
    transport.receive(peer, tag, std::span(in).subspan(static_cast<std::size_t>(peer), 1));
    transport.send(peer, tag, std::span(&out, 1));
  }
  wait_for(transport, 2 * static_cast<std::size_t>(peers.size() - 1));
}

const std::vector<ConformanceCase>& conformance_cases() {
  static const std::vector<ConformanceCase> cases = {
      {"KnowsItsPeers", knows_its_peers},
      {"MovesEverySize", moves_every_size},
      {"KeepsTheOrderOfOneTag", keeps_the_order_of_one_tag},
      {"MatchesTagsAndChannelsApart", matches_tags_and_channels_apart},
      {"AnyNumberTakesWhatComesNextOnItsChannel", any_number_takes_what_comes_next_on_its_channel},
      {"AReceiveMayHaveRoomToSpare", a_receive_may_have_room_to_spare},
      {"EarlyMessagesWaitForTheirReceives", early_messages_wait_for_their_receives},
      {"TellsWhatCameEarlyOrNeverDoes", tells_what_came_early_or_never_does},
      {"ManyTransfersWithEverybody", many_transfers_with_everybody},
      {"ACrowdOfAnySizes", a_crowd_of_any_sizes},
      {"WaitEndsAtItsDeadline", wait_ends_at_its_deadline},
      {"WakeEndsAWait", wake_ends_a_wait},
      {"AnAnswerLandsOnItsQuestion", an_answer_lands_on_its_question},
      {"RegisteredMemoryCarriesTransfers", registered_memory_carries_transfers},
      {"HasOneSetOfTraitsThatHolds", has_one_set_of_traits_that_holds},
      {"ATimeOutNamesPeerAndTag", a_time_out_names_peer_and_tag},
  };
  return cases;
}

}  // namespace commtune::tests
