#pragma once
// What coroutines on the communication thread await: a library's collectives.

#include <coroutine>
#include <vector>

#include "executor/base/async_operation.h"
#include "executor/collectives/library.h"
#include "executor/transport/communicator.h"

namespace commtune {

/// Collectives of one library, started and awaited on the communicator's thread. One for a library at a time.
class LibraryQueue final : public ProgressSource {
 public:
  /// Both outlive it.
  LibraryQueue(Communicator& communicator, CollectiveLibrary& library);
  ~LibraryQueue() override;

  AsyncOperation all_reduce(DataType type, Buffer data);
  AsyncOperation reduce_scatter(DataType type, Buffer data);
  AsyncOperation all_gather(DataType type, Buffer data);

  void progress(std::vector<std::coroutine_handle<>>& resumable) override;

 private:
  Communicator& communicator_;
  CollectiveLibrary& library_;
  AsyncOperations under_way_;
};

}  // namespace commtune
