#include "executor/memory/cuda/event_watch.h"

#include <utility>

namespace commtune::cuda {

EventWatch::EventWatch(const Gpu& gpu)
    : thread_([this, context = gpu.context()](const std::stop_token& stop) { watch(stop, context); }) {}

void EventWatch::add(std::shared_ptr<Event> event, std::function<void()> passed) {
  const std::lock_guard lock(mutex_);
  events_.push_back({std::move(event), std::move(passed)});
  changed_.notify_one();
}

void EventWatch::watch(const std::stop_token& stop, CUcontext context) {
  driver().set_context(context);
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !events_.empty(); })) {
    Notice next = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    driver().synchronize_event(next.event->handle());  // who asks for the end hears of a failure
    next.event.reset();
    next.passed();
    lock.lock();
  }
}

}  // namespace commtune::cuda
