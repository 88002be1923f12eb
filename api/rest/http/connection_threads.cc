#include "api/rest/http/connection_threads.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace commtune::api::rest {
namespace {

constexpr std::chrono::seconds kKept{5};

}  // namespace

void ConnectionThreads::enqueue(std::function<void()> work) {
  std::unique_lock lock(mutex_);
  waiting_.push_back(std::move(work));
  if (waiting_.size() <= idle_ || threads_ >= most_) {
    work_here_.notify_one();
    return;
  }
  try {
    // Detached and counted: a thread ends by itself, and shutdown() waits for the count.
    std::thread([this] { serve(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
    if (threads_ > 0) return;  // one of those that there are will take it
    waiting_.pop_back();
    throw;
  }
}

void ConnectionThreads::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    const bool called = work_here_.wait_for(lock, kKept, [this] { return !waiting_.empty() || ending_; });
    --idle_;
    if (waiting_.empty() && (!called || ending_)) break;
    if (waiting_.empty()) continue;
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
  --threads_;
  thread_ended_.notify_all();
}

void ConnectionThreads::shutdown() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  work_here_.notify_all();
  thread_ended_.wait(lock, [this] { return threads_ == 0; });
}

}  // namespace commtune::api::rest
