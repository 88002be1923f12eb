#include "executor/collectives/library_queue.h"

namespace commtune {

LibraryQueue::LibraryQueue(Communicator& communicator, CollectiveLibrary& library)
    : communicator_(communicator), library_(library) {
  communicator_.add_source(*this);
}

LibraryQueue::~LibraryQueue() { communicator_.remove_source(*this); }

AsyncOperation LibraryQueue::all_reduce(DataType type, Buffer data) {
  return under_way_.open(library_.all_reduce(type, data));
}

AsyncOperation LibraryQueue::reduce_scatter(DataType type, Buffer data) {
  return under_way_.open(library_.reduce_scatter(type, data));
}

AsyncOperation LibraryQueue::all_gather(DataType type, Buffer data) {
  return under_way_.open(library_.all_gather(type, data));
}

void LibraryQueue::progress(std::vector<std::coroutine_handle<>>& resumable) {
  if (under_way_.any_under_way()) under_way_.end(library_.ended(), resumable);
}

}  // namespace commtune
