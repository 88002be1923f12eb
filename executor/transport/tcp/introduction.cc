#include "executor/transport/tcp/introduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <type_traits>

#include "perfmodel/base/error.h"

namespace commtune::tcp {
namespace {

constexpr Tag kIntroductionTag = make_tag(TagSpace::kControl, kTagNumbers - 2);

struct Letter {
  AddressCard card;
  Secret secret{};  // rank 0's counts
};
static_assert(std::is_trivially_copyable_v<Letter>);

/// Waits until so many transfers have ended. Each carries a whole letter.
void finish(Transport& bootstrap, std::size_t pending, Deadline deadline) {
  while (pending > 0) {
    const auto completed = bootstrap.wait(deadline);
    if (completed.empty() && Clock::now() >= deadline) {
      throw Error(ErrorCode::kTimeout, "exchanging addresses with the other ranks: timed out");
    }
    for (const Completion& completion : completed) {
      if (completion.bytes == sizeof(Letter)) continue;
      throw Error(ErrorCode::kConflict,
                  fmt::format("a rank's card has {} B: must have {}; do all ranks run the same commtune?",
                              completion.bytes, sizeof(Letter)));
    }
    pending -= completed.size();
  }
}

void check(const AddressCard& card, const Peers& peers, int rank) {
  if (card.count <= AddressCard::kMaxAddresses) return;
  throw Error(ErrorCode::kConflict,
              fmt::format("card of {}: {} addresses, must be at most {}", describe(peers, rank), card.count,
                          AddressCard::kMaxAddresses));
}

}  // namespace

Introduction introduce(Transport& bootstrap, const AddressCard& mine, Deadline deadline) {
  const Peers& peers = bootstrap.peers();
  std::vector<Letter> letters(peers.hosts.size());
  Letter& own = letters[static_cast<std::size_t>(peers.rank)];
  own.card = mine;
  if (peers.rank == 0) own.secret = make_secret();
  std::size_t pending = 0;
  for (int peer = 0; peer < peers.size(); ++peer) {
    if (peer == peers.rank) continue;
    Letter& theirs = letters[static_cast<std::size_t>(peer)];
    bootstrap.receive(peer, kIntroductionTag, std::as_writable_bytes(std::span(&theirs, 1)));
    bootstrap.send(peer, kIntroductionTag, std::as_bytes(std::span(&own, 1)));
    pending += 2;
  }
  finish(bootstrap, pending, deadline);
  Introduction known{{}, letters.front().secret};
  for (int peer = 0; peer < peers.size(); ++peer) {
    known.cards.push_back(letters[static_cast<std::size_t>(peer)].card);
    check(known.cards.back(), peers, peer);
  }
  return known;
}

}  // namespace commtune::tcp
