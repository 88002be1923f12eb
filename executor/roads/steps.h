#pragma once
// What algorithms are made of: moving a stretch of a message to or from one peer, in chunks.

#include "executor/roads/road.h"

namespace commtune {

/// A second independent stream of the same message between the same ranks (double trees).
constexpr Tag lane_tag(TagSpace space, std::uint32_t number, std::uint32_t lane) {
  return make_tag(space, number + lane * kLaneNumbers);
}

/// One peer's stream of one message.
struct ChunkStream {
  int peer = 0;
  Tag tag = 0;
  std::size_t chunk_bytes = 0;  ///< the same at both ends
};

/// Starts sending `range`, chunk by chunk; ends with the group.
void start_send(const RoadMessage& message, const ChunkStream& stream, Range range, Group& group);

/// A range on its way to a peer who sends one in return. Only its beginning goes at once, the rest when the
/// first chunk of the return has come: until then the peer may still be receiving from others, whom all of
/// it would hold up, so that a rank that is late gets later still. On 8 hosts of 200 Mb/s that made an
/// all-reduce of 1.3 MB by halving and doubling take 168 ms, where its bytes take 100.
class Sending {
 public:
  /// Starts with the first chunks. Sends end with the group; message and group outlive this.
  Sending(const RoadMessage& message, const ChunkStream& stream, Range range, Group& group);
  /// Sends the rest, if there is any left.
  void go_on();

 private:
  const RoadMessage& message_;
  ChunkStream stream_;
  Range range_;
  Group& group_;
  std::size_t sent_ = 0;  ///< chunks
};

/// Receives `range` and adds it to what is there, each chunk as it arrives; `in_return` goes on with the
/// first.
Task receive_and_add(RoadMessage message, ChunkStream stream, Range range, Sending* in_return = nullptr);

/// Receives `range` over what is there; `in_return` goes on with the first chunk.
Task receive_in_place(RoadMessage message, ChunkStream stream, Range range, Sending* in_return = nullptr);

/// Both ranks send the same range to each other and add what comes: both end with the same bits.
Task exchange_and_add(RoadMessage message, ChunkStream stream, Range range);

/// The power-of-two part of `workers`: the largest P = 2^k <= workers. Rank P+i folds its data into rank i
/// before an algorithm for P ranks and gets the result after it.
int folded_size(int workers);

}  // namespace commtune
