#include "tests/gpu/standin/stream.h"

#include <algorithm>
#include <utility>

namespace commtune::standin {
namespace {

thread_local bool g_in_host_function = false;

}  // namespace

bool in_host_function() { return g_in_host_function; }

WorkStream::WorkStream() : state_(std::make_shared<State>()), thread_([state = state_] { work(state); }) {}

WorkStream::~WorkStream() {
  bool idle = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    idle = state_->works.empty() && !state_->busy;
    state_->changed.notify_all();
  }
  if (idle) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void WorkStream::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->closed || !state->works.empty(); });
    if (state->works.empty()) return;
    std::function<void()> next = std::move(state->works.front());
    state->works.pop_front();
    state->busy = true;
    lock.unlock();
    next();
    next = {};
    lock.lock();
    state->busy = false;
    state->changed.notify_all();
  }
}

void WorkStream::put(std::function<void()> work) {
  const std::lock_guard lock(state_->mutex);
  state_->works.push_back(std::move(work));
  state_->changed.notify_all();
}

void WorkStream::call(std::function<void()> work) {
  put([work = std::move(work)] {
    g_in_host_function = true;
    work();
    g_in_host_function = false;
  });
}

void WorkStream::synchronize() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->works.empty() && !state_->busy; });
}

bool WorkStream::is_idle() {
  const std::lock_guard lock(state_->mutex);
  return state_->works.empty() && !state_->busy;
}

void StreamEvent::record(WorkStream& stream) {
  std::uint64_t count = 0;
  {
    const std::lock_guard lock(state_->mutex);
    count = ++state_->recorded;
  }
  stream.put([state = state_, count] {
    const std::lock_guard lock(state->mutex);
    state->passed = std::max(state->passed, count);
    state->when = std::chrono::steady_clock::now();
    state->changed.notify_all();
  });
}

void StreamEvent::wait_for(State& state, std::uint64_t count) {
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.passed >= count; });
}

void StreamEvent::hold(WorkStream& stream) const {
  std::uint64_t count = 0;
  {
    const std::lock_guard lock(state_->mutex);
    count = state_->recorded;
  }
  stream.put([state = state_, count] { wait_for(*state, count); });
}

bool StreamEvent::has_passed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->passed >= state_->recorded;
}

void StreamEvent::synchronize() const {
  std::uint64_t count = 0;
  {
    const std::lock_guard lock(state_->mutex);
    count = state_->recorded;
  }
  wait_for(*state_, count);
}

std::chrono::steady_clock::time_point StreamEvent::when() const {
  const std::lock_guard lock(state_->mutex);
  return state_->when;
}

bool StreamEvent::was_recorded() const {
  const std::lock_guard lock(state_->mutex);
  return state_->recorded > 0;
}

}  // namespace commtune::standin
