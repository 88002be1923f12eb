#include "executor/transport/tcp/introduction.h"

#include <fmt/format.h>

#include "perfmodel/base/error.h"

namespace commtune::tcp {
namespace {

struct Letter {
  AddressCard card;
  Secret secret{};  // rank 0's counts
};

std::vector<Letter> exchange(Bootstrap& bootstrap, const Letter& own, Deadline deadline) {
  try {
    return all_gather(bootstrap, own, deadline);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("exchanging addresses with the other ranks: {}", error.what()));
  }
}

void check(const AddressCard& card, const Peers& peers, int rank) {
  if (card.count <= AddressCard::kMaxAddresses) return;
  throw Error(ErrorCode::kConflict,
              fmt::format("card of {}: {} addresses, must be at most {}", describe(peers, rank), card.count,
                          AddressCard::kMaxAddresses));
}

}  // namespace

Introduction introduce(Bootstrap& bootstrap, const AddressCard& mine, Deadline deadline) {
  const Peers& peers = bootstrap.peers();
  Letter own{.card = mine};
  if (peers.rank == 0) own.secret = make_secret();
  const std::vector<Letter> letters = exchange(bootstrap, own, deadline);
  Introduction known{{}, letters.front().secret};
  for (int peer = 0; peer < peers.size(); ++peer) {
    known.cards.push_back(letters[static_cast<std::size_t>(peer)].card);
    check(known.cards.back(), peers, peer);
  }
  return known;
}

}  // namespace commtune::tcp
