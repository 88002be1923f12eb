#include "executor/roads/all_reduce/library.h"

#include "perfmodel/base/error.h"

namespace commtune {
namespace {

LibraryQueue& library_of(const RoadMessage& message) {
  if (message.library != nullptr) return *message.library;
  throw Error(ErrorCode::kUnavailable, "algorithm = library: this rank has no library of collectives");
}

Buffer own_part(const RoadMessage& message) {
  const std::size_t element = element_size(message.settings.type).count;
  return message.part(
      segment(message.data.bytes, element, message.settings.workers, message.communicator.rank()));
}

}  // namespace

Task library_all_reduce(RoadMessage message) {
  co_await library_of(message).all_reduce(message.settings.type, message.data);
  co_await message.finish(message.data);
  message.report(Stage::kReduce);
}

Task library_reduce_scatter(RoadMessage message) {
  co_await library_of(message).reduce_scatter(message.settings.type, message.data);
  co_await message.finish(own_part(message));
  message.report(Stage::kReduce);
}

Task library_all_gather(RoadMessage message) {
  co_await library_of(message).all_gather(message.settings.type, message.data);
}

}  // namespace commtune
