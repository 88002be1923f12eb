#pragma once
// What algorithms are made of: moving a stretch of a message to or from one peer, in chunks.

#include "executor/roads/road.h"

namespace commtune {

/// A second independent stream of the same message between the same ranks (double trees).
constexpr Tag lane_tag(Channel channel, std::uint32_t number, std::uint32_t lane) {
  return make_tag(channel, number + lane * kLaneNumbers);
}

/// One peer's stream of one message.
struct Stream {
  int peer = 0;
  Tag tag = 0;
  std::size_t chunk_bytes = 0;  ///< the same at both ends
};

/// Starts sending `range`, chunk by chunk; ends with the group.
void start_send(const RoadMessage& message, const Stream& stream, Range range, Group& group);

/// Receives `range` and adds it to what is there, each chunk as it arrives.
Task receive_and_add(RoadMessage message, Stream stream, Range range);

/// Receives `range` over what is there.
Task receive_in_place(RoadMessage message, Stream stream, Range range);

/// Both ranks send the same range to each other and add what comes: both end with the same bits.
Task exchange_and_add(RoadMessage message, Stream stream, Range range);

/// The power-of-two part of `workers`: the largest P = 2^k <= workers. Rank P+i folds its data into rank i
/// before an algorithm for P ranks and gets the result after it.
int folded_size(int workers);

}  // namespace commtune
