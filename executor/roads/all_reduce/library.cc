#include "executor/roads/all_reduce/library.h"

#include <fmt/format.h>

#include "perfmodel/base/error.h"

namespace commtune {

Task library_all_reduce(RoadMessage message) {
  const auto transfer = message.communicator.library_all_reduce(message.settings.workers,
                                                                message.settings.type, message.data.host());
  if (!transfer) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("algorithm = library: the transport '{}' has no all-reduce of its own",
                            message.communicator.transport().name()));
  }
  co_await *transfer;
  co_await message.finish(message.data);
  message.report(Stage::kReduce);
}

}  // namespace commtune
