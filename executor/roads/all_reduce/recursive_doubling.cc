#include "executor/roads/all_reduce/recursive_doubling.h"

#include "executor/roads/steps.h"

namespace commtune {

Task recursive_doubling_all_reduce(RoadMessage message) {
  const RoadSettings& settings = message.settings;
  const int rank = message.communicator.rank();
  const int size = folded_size(settings.workers);
  const Range whole{0, message.data.bytes};
  const auto stream = [&](int peer) {
    return ChunkStream{peer, make_tag(TagSpace::kReduce, message.number),
                       settings.chunk_for(whole.length, 1)};
  };
  Group sends;
  if (rank >= size) {
    start_send(message, stream(rank - size), whole, sends);
    co_await receive_in_place(message, stream(rank - size), whole);
    co_await sends.empty();
    message.report(Stage::kReduce);
    co_return;
  }
  const bool folds = rank + size < settings.workers;
  if (folds) co_await receive_and_add(message, stream(rank + size), whole);
  for (int distance = 1; distance < size; distance *= 2) {
    co_await exchange_and_add(message, stream(rank ^ distance), whole);
  }
  co_await message.finish(message.data);
  if (folds) start_send(message, stream(rank + size), whole, sends);
  co_await sends.empty();
  message.report(Stage::kReduce);
}

}  // namespace commtune
