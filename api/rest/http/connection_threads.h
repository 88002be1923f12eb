#pragma once
// A thread for each connection, kept for a while for the next one.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace commtune::api::rest {

class ConnectionThreads {
 public:
  /// most  threads at a time; what comes beyond waits for one
  explicit ConnectionThreads(std::size_t most) : most_(most) {}
  /// Throws std::system_error where no thread can be had at all.
  void enqueue(std::function<void()> work);
  /// Waits until all that was enqueued is done and the threads have ended.
  void shutdown();

 private:
  void serve();

  const std::size_t most_;
  std::mutex mutex_;  // guards all below
  std::condition_variable work_here_, thread_ended_;
  std::deque<std::function<void()>> waiting_;
  std::size_t threads_ = 0, idle_ = 0;
  bool ending_ = false;
};

}  // namespace commtune::api::rest
