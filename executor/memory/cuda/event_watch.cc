#include "executor/memory/cuda/event_watch.h"

#include <utility>

namespace commtune::cuda {

EventWatch::EventWatch(const Gpu& gpu, std::shared_ptr<Waker> waker)
    : waker_(std::move(waker)),
      thread_([this, context = gpu.context()](const std::stop_token& stop) { watch(stop, context); }) {}

void EventWatch::add(std::shared_ptr<Event> event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  changed_.notify_one();
}

void EventWatch::watch(const std::stop_token& stop, CUcontext context) {
  driver().set_context(context);
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !events_.empty(); })) {
    std::shared_ptr<Event> event = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    driver().synchronize_event(event->handle());  // who asks for the end hears of a failure
    event.reset();
    waker_->call();
    lock.lock();
  }
}

}  // namespace commtune::cuda
