#include "executor/transport/verbs/connect.h"

#include <fmt/format.h>

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
  proof::Secret secret{};  // rank 0's counts
};

/// What a card's owner has for each rank follows it.
struct Letter {
  Card card;
  std::vector<PairAddress> pairs;  // by rank
};

std::vector<std::byte> pack(const Letter& letter) {
  std::vector<std::byte> bytes(sizeof(Card) + letter.pairs.size() * sizeof(PairAddress));
  std::memcpy(bytes.data(), &letter.card, sizeof(Card));
  std::memcpy(bytes.data() + sizeof(Card), letter.pairs.data(), letter.pairs.size() * sizeof(PairAddress));
  return bytes;
}

std::vector<Letter> unpack(std::span<const std::byte> bytes, std::size_t ranks) {
  std::vector<Letter> letters(ranks);
  for (Letter& letter : letters) {
    letter.pairs.resize(ranks);
    std::memcpy(&letter.card, bytes.data(), sizeof(Card));
    std::memcpy(letter.pairs.data(), bytes.data() + sizeof(Card), ranks * sizeof(PairAddress));
    bytes = bytes.subspan(sizeof(Card) + ranks * sizeof(PairAddress));
  }
  return letters;
}

std::vector<Letter> exchange(Bootstrap& bootstrap, const Device& device, const std::vector<QueuePair*>& pairs,
                             Deadline until) {
  Letter own{{address_of(device), {}}, {}};
  if (bootstrap.peers().rank == 0) own.card.secret = proof::make_secret();
  for (const QueuePair* const pair : pairs)
    own.pairs.push_back(pair == nullptr ? PairAddress{} : pair->address());
  return unpack(bootstrap.all_gather(pack(own), until), pairs.size());
}

/// All that a proof is bound to beside the secret.
struct Statement {
  std::array<char, 16> purpose{"commtune verbs1"};
  std::int32_t prover = 0, verifier = 0;  // ranks
  PairAddress of_prover, of_verifier;
};
static_assert(sizeof(Statement) == 40, "no padding is digested");

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
std::string why_apart(const CardAddress& mine, const CardAddress& theirs) {
  if (mine.kind == theirs.kind) return "";
  return "the two cards' addresses are of different kinds (RoCE v1, RoCE v2, InfiniBand)";
}

std::string connect_each(const Peers& peers, const Device& device, const std::vector<QueuePair*>& pairs,
                         const std::vector<Letter>& letters, const RetryRule& retry) {
  for (int peer = 0; peer < peers.size(); ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    if (pairs[index] == nullptr) continue;
    const Letter& letter = letters[index];
    std::string why = why_apart(address_of(device), letter.card.address);
    try {
      if (why.empty())
        pairs[index]->connect(letter.card.address, letter.pairs[static_cast<std::size_t>(peers.rank)], retry);
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
                                        const std::vector<QueuePair*>& pairs, const RetryRule& retry,
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
