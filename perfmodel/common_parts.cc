#include "perfmodel/common_parts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace commtune {

namespace {

/// A piece with its place among all pieces of a list of messages.
struct Placed {
  Piece piece;
  std::uint32_t message = 0;
  std::size_t place = 0;
};

std::vector<Placed> by_address(const std::vector<Message>& messages) {
  std::vector<Placed> placed;
  for (std::uint32_t m = 0; m < messages.size(); ++m) {
    for (const Piece& piece : messages[m].pieces) placed.push_back({piece, m, placed.size()});
  }
  std::ranges::sort(placed, {},
                    [](const Placed& each) { return std::pair(each.piece.tensor, each.piece.offset); });
  return placed;
}

Bytes end_of(const Piece& piece) { return piece.offset + piece.length; }

/// What a piece of a message and one of a pull have in common.
struct Overlap {
  Piece piece;
  std::uint32_t message = 0, pull = 0;
  std::size_t pushed = 0, pulled = 0;  ///< places of the two pieces
  std::uint32_t part = 0;              ///< of which it is a piece
};

std::vector<Overlap> overlaps(const Plan& plan) {
  const std::vector<Placed> pushed = by_address(plan.messages), pulled = by_address(plan.pulls);
  std::vector<Overlap> found;
  found.reserve(pushed.size() + pulled.size());
  auto pull = pulled.begin();
  for (const Placed& push : pushed) {
    for (Bytes from = push.piece.offset; from < end_of(push.piece) && pull != pulled.end();) {
      const Bytes until = std::min(end_of(push.piece), end_of(pull->piece));
      found.push_back(
          {{push.piece.tensor, from, until - from}, push.message, pull->message, push.place, pull->place, 0});
      from = until;
      if (until == end_of(pull->piece)) ++pull;
    }
  }
  return found;
}

}  // namespace

CommonParts common_parts(const Plan& plan) {
  CommonParts common;
  if (plan.pulls.empty()) return common;
  common.of_message.resize(plan.messages.size());
  common.of_pull.resize(plan.pulls.size());
  std::vector<Overlap> found = overlaps(plan);
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> part_of(plan.pulls.size(), kNone);  // of the message at hand
  std::ranges::sort(found, {}, [](const Overlap& each) { return std::pair(each.pushed, each.piece.offset); });
  for (Overlap& each : found) {
    std::uint32_t& part = part_of[each.pull];
    if (part == kNone || common.parts[part].message != each.message) {
      part = static_cast<std::uint32_t>(common.parts.size());
      common.parts.push_back({each.message, each.pull, {}});
      common.of_message[each.message].push_back(part);
    }
    common.parts[part].pieces.pieces.push_back(each.piece);
    each.part = part;
  }
  std::ranges::sort(found, {}, [](const Overlap& each) { return std::pair(each.pulled, each.piece.offset); });
  std::vector<bool> named(common.parts.size(), false);
  for (const Overlap& each : found) {
    if (!named[each.part]) common.of_pull[each.pull].push_back(each.part);
    named[each.part] = true;
  }
  return common;
}

}  // namespace commtune
