#include "executor/roads/all_reduce/library.h"

#include "perfmodel/base/error.h"

namespace commtune {

Task library_all_reduce(RoadMessage message) {
  if (message.library == nullptr) {
    throw Error(ErrorCode::kUnavailable, "algorithm = library: this rank has no library of collectives");
  }
  co_await message.library->all_reduce(message.settings.type, message.data);
  co_await message.finish(message.data);
  message.report(Stage::kReduce);
}

}  // namespace commtune
