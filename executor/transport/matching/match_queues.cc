#include "executor/transport/matching/match_queues.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::matching {
namespace {

/// True if a message with the tag `sent` may go to a receive with the tag `receive`.
bool fits(Tag receive, Tag sent) {
  return receive == sent || (number_of(receive) == kAnyNumber && tag_space_of(receive) == tag_space_of(sent));
}

/// As MessageLimits::early counts it.
std::uint64_t weight(const Envelope& early) { return early.size + MessageLimits::kPerMessage.count; }

}  // namespace

MatchQueues::MatchQueues(Transfers& transfers, const Peers& peers, const MessageLimits& limits, int peer)
    : transfers_(&transfers), peers_(&peers), limits_(&limits), peer_(peer) {}

std::optional<EarlyMessage> MatchQueues::post(TransferId receive) {
  const Tag tag = (*transfers_)[receive].envelope.tag;
  const auto found =
      std::ranges::find_if(early_, [&](const EarlyMessage& early) { return fits(tag, early.envelope.tag); });
  if (found == early_.end()) {
    transfers_->append(posted_, receive);
    return std::nullopt;
  }
  check_room(found->envelope, receive);
  std::optional<EarlyMessage> message(std::move(*found));
  early_.erase(found);
  early_bytes_ -= weight(message->envelope);
  return message;
}

TransferId MatchQueues::take_receive(const Envelope& message) {
  if (message.size > limits_->longest.count) {
    throw Error(ErrorCode::kConflict,
                fmt::format("{} announced a message of {} B: must be at most {} B, the longest part of what "
                            "the ranks have agreed on",
                            describe(*peers_, peer_), message.size, limits_->longest.count));
  }
  TransferId before = kNoTransfer;
  for (TransferId id = posted_.first; id != kNoTransfer; before = id, id = (*transfers_)[id].next) {
    if (!fits((*transfers_)[id].envelope.tag, message.tag)) continue;
    check_room(message, id);
    return transfers_->unlink_after(posted_, before);
  }
  return kNoTransfer;
}

EarlyMessage& MatchQueues::keep(const Envelope& message) {
  check_early(message);
  early_.push_back({message, transfers_->early_memory().take(message.size)});
  early_bytes_ += weight(message);
  tell(message.tag);
  return early_.back();
}

void MatchQueues::keep(EarlyMessage message) {
  check_early(message.envelope);
  early_.push_back(std::move(message));
  early_bytes_ += weight(early_.back().envelope);
  tell(early_.back().envelope.tag);
}

void MatchQueues::recycle(EarlyMessage message) { transfers_->early_memory().give(std::move(message.data)); }

/// A plan's messages alone are started because a peer has begun them.
void MatchQueues::tell(Tag early) {
  if (tag_space_of(early) != TagSpace::kControl) transfers_->note_early();
}

bool MatchQueues::came_early(TagSpace space, std::uint32_t message) const {
  return std::ranges::any_of(early_, [&](const EarlyMessage& early) {
    return tag_space_of(early.envelope.tag) == space && message_of(early.envelope.tag) == message;
  });
}

void MatchQueues::check_early(const Envelope& message) const {
  const std::uint64_t more = weight(message);
  if (early_bytes_ + more <= limits_->early.count) return;
  throw Error(ErrorCode::kConflict,
              fmt::format("{} sent {} B before they were asked for, and {} B more: must be at most {} B",
                          describe(*peers_, peer_), early_bytes_, more, limits_->early.count));
}

void MatchQueues::check_room(const Envelope& message, TransferId receive) const {
  const std::uint64_t room = (*transfers_)[receive].envelope.size;
  if (message.size <= room) return;
  throw Error(ErrorCode::kConflict,
              fmt::format("{} sent {} B where at most {} B were expected (channel {}, number {})",
                          describe(*peers_, peer_), message.size, room,
                          static_cast<std::uint32_t>(tag_space_of(message.tag)), number_of(message.tag)));
}

}  // namespace commtune::matching
