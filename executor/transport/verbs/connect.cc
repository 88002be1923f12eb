#include "executor/transport/verbs/connect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "perfmodel/base/error.h"

namespace commtune::verbs {
namespace {

/// As ranks tell it each other, cut where it is longer; empty: none.
using Text = std::array<char, 512>;

struct Card {
  CardAddress address;
  std::uint32_t connections = 0;  // to each peer
  proof::Secret secret{};         // rank 0's counts
};

/// A rank's connections to a peer; the last are not in use where there are fewer.
using PairAddresses = std::array<PairAddress, kMostConnections>;

/// What a card's owner has for each rank follows it.
struct Letter {
  Card card;
  std::vector<PairAddresses> pairs;  // by rank
};

std::vector<std::byte> pack(const Letter& letter) {
  std::vector<std::byte> bytes(sizeof(Card) + letter.pairs.size() * sizeof(PairAddresses));
  std::memcpy(bytes.data(), &letter.card, sizeof(Card));
  std::memcpy(bytes.data() + sizeof(Card), letter.pairs.data(), letter.pairs.size() * sizeof(PairAddresses));
  return bytes;
}

std::vector<Letter> unpack(std::span<const std::byte> bytes, std::size_t ranks) {
  std::vector<Letter> letters(ranks);
  for (Letter& letter : letters) {
    letter.pairs.resize(ranks);
    std::memcpy(&letter.card, bytes.data(), sizeof(Card));
    std::memcpy(letter.pairs.data(), bytes.data() + sizeof(Card), ranks * sizeof(PairAddresses));
    bytes = bytes.subspan(sizeof(Card) + ranks * sizeof(PairAddresses));
  }
  return letters;
}

std::vector<Letter> exchange(Bootstrap& bootstrap, const Device& device,
                             const std::vector<PairsOfPeer>& pairs, Deadline until) {
  Letter own{{.address = address_of(device)}, {}};
  if (bootstrap.peers().rank == 0) own.card.secret = proof::make_secret();
  for (const PairsOfPeer& to_peer : pairs) {
    own.card.connections = std::max(own.card.connections, static_cast<std::uint32_t>(to_peer.size()));
    PairAddresses addresses{};
    std::ranges::transform(to_peer, addresses.begin(), &QueuePair::address);
    own.pairs.push_back(addresses);
  }
  return unpack(bootstrap.all_gather(pack(own), until), pairs.size());
}

/// All that a proof is bound to beside the secret.
struct Statement {
  std::array<char, 16> purpose{"commtune verbs1"};
  std::int32_t prover = 0, verifier = 0;  // ranks
  PairAddresses of_prover, of_verifier;
};
static_assert(sizeof(Statement) == 24 + 2 * sizeof(PairAddresses), "no padding is digested");

proof::Proof prove(const std::vector<Letter>& letters, int prover, int verifier) {
  const auto from = static_cast<std::size_t>(prover), to = static_cast<std::size_t>(verifier);
  Statement statement;
  statement.prover = prover;
  statement.verifier = verifier;
  statement.of_prover = letters[from].pairs[to];
  statement.of_verifier = letters[to].pairs[from];
  return proof::prove(letters.front().card.secret, std::as_bytes(std::span(&statement, 1)));
}

/// Why these two cards cannot be connected; empty: they can.
///
/// connections  of this rank to each peer
std::string why_apart(const CardAddress& mine, std::size_t connections, const Card& theirs) {
  if (mine.kind != theirs.address.kind)
    return "the two cards' addresses are of different kinds (RoCE v1, RoCE v2, InfiniBand)";
  if (connections != theirs.connections)
    return fmt::format("it has {} connections a pair, this rank {}", theirs.connections, connections);
  return "";
}

std::string connect_each(const Peers& peers, const Device& device, const std::vector<PairsOfPeer>& pairs,
                         const std::vector<Letter>& letters, const RetryRule& retry) {
  for (int peer = 0; peer < peers.size(); ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    const Letter& letter = letters[index];
    if (peer == peers.rank) continue;
    std::string why = why_apart(address_of(device), pairs[index].size(), letter.card);
    try {
      const PairAddresses& theirs = letter.pairs[static_cast<std::size_t>(peers.rank)];
      for (std::size_t lane = 0; why.empty() && lane < pairs[index].size(); ++lane)
        pairs[index][lane]->connect(letter.card.address, theirs[lane], retry);
    } catch (const Error& error) {
      why = error.what();
    }
    if (!why.empty()) return fmt::format("connecting to {}: {}", describe(peers, peer), why);
  }
  return "";
}

}  // namespace

void agree_on_success(Bootstrap& bootstrap, const std::string& failure, Deadline until) {
  Text own{};
  failure.copy(own.data(), own.size() - 1);
  const std::vector<Text> all = all_gather(bootstrap, own, until);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].front() == '\0') continue;
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{}: {}", describe(bootstrap.peers(), static_cast<int>(rank)), all[rank].data()));
  }
}

std::vector<Introduction> connect_pairs(Bootstrap& bootstrap, const Device& device,
                                        const std::vector<PairsOfPeer>& pairs, const RetryRule& retry,
                                        Deadline until) {
  const std::vector<Letter> letters = exchange(bootstrap, device, pairs, until);
  // Nobody sends before all can receive: what came too early would be sent again only after a time-out.
  agree_on_success(bootstrap, connect_each(bootstrap.peers(), device, pairs, letters, retry), until);
  std::vector<Introduction> introductions;
  introductions.reserve(pairs.size());
  const int rank = bootstrap.peers().rank;
  for (int peer = 0; peer < bootstrap.peers().size(); ++peer)
    introductions.push_back({prove(letters, rank, peer), prove(letters, peer, rank)});
  return introductions;
}

}  // namespace commtune::verbs
