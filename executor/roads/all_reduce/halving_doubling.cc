#include "executor/roads/all_reduce/halving_doubling.h"

#include "executor/roads/steps.h"

namespace commtune {
namespace {

/// Segments [first, first + count) of P.
struct Stretch {
  int first = 0, count = 0;
  Stretch half(bool upper) const { return {first + (upper ? count / 2 : 0), count / 2}; }
};

struct Halving {
  explicit Halving(const RoadMessage& message, TagSpace space_used)
      : bytes(message.data.bytes),
        element(element_size(message.settings.type).count),
        rank(message.communicator.rank()),
        workers(message.settings.workers),
        size(folded_size(workers)),
        space(space_used),
        number(message.number),
        chunk_bytes(message.settings.chunk_for(bytes, size)) {}

  bool folded() const { return rank >= size; }
  /// The rank that this one's data are folded into, or that folds into this one; -1 when there is none.
  int fold_partner() const {
    if (folded()) return rank - size;
    return rank + size < workers ? rank + size : -1;
  }
  Range whole() const { return {0, bytes}; }
  Range range(Stretch stretch) const {
    const std::size_t begin = segment(bytes, element, size, stretch.first).offset;
    return {begin, segment(bytes, element, size, stretch.first + stretch.count - 1).end() - begin};
  }
  ChunkStream stream(int peer) const { return {peer, make_tag(space, number), chunk_bytes}; }

  std::size_t bytes, element;
  int rank, workers, size;
  TagSpace space;
  std::uint32_t number;
  std::size_t chunk_bytes;
};

}  // namespace

Task halving_reduce_scatter(RoadMessage message) {
  const Halving halving(message, TagSpace::kReduce);
  Group sends;
  if (halving.folded()) {
    start_send(message, halving.stream(halving.fold_partner()), halving.whole(), sends);
    co_await sends.empty();
    message.report(Stage::kReduce);
    co_return;
  }
  if (halving.fold_partner() >= 0) {
    co_await receive_and_add(message, halving.stream(halving.fold_partner()), halving.whole());
  }
  Stretch mine{0, halving.size};
  for (int distance = halving.size / 2; distance > 0; distance /= 2) {
    const ChunkStream stream = halving.stream(halving.rank ^ distance);
    const bool upper = (halving.rank & distance) != 0;
    Sending sending(message, stream, halving.range(mine.half(!upper)), sends);
    mine = mine.half(upper);
    co_await receive_and_add(message, stream, halving.range(mine), &sending);
  }
  co_await message.finish(message.part(halving.range(mine)));
  co_await sends.empty();
  message.report(Stage::kReduce);
}

Task doubling_all_gather(RoadMessage message) {
  const Halving halving(message, TagSpace::kDistribute);
  if (halving.folded()) {
    co_await receive_in_place(message, halving.stream(halving.fold_partner()), halving.whole());
    message.report(Stage::kDistribute);
    co_return;
  }
  Group sends;
  Stretch mine{halving.rank, 1};
  for (int distance = 1; distance < halving.size; distance *= 2) {
    const ChunkStream stream = halving.stream(halving.rank ^ distance);
    const bool upper = (halving.rank & distance) != 0;
    const Stretch theirs{upper ? mine.first - distance : mine.first + distance, distance};
    Sending sending(message, stream, halving.range(mine), sends);
    co_await receive_in_place(message, stream, halving.range(theirs), &sending);
    mine = {std::min(mine.first, theirs.first), 2 * distance};
  }
  if (halving.fold_partner() >= 0) {
    start_send(message, halving.stream(halving.fold_partner()), halving.whole(), sends);
  }
  co_await sends.empty();
  message.report(Stage::kDistribute);
}

Task halving_doubling_all_reduce(RoadMessage message) {
  co_await halving_reduce_scatter(message);
  co_await doubling_all_gather(message);
}

}  // namespace commtune
