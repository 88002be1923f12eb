#pragma once
// Coroutines for the communication thread: an algorithm on the network reads like its text, and many of them
// are under way at once on one thread. Frames come from a pool per thread, so that a steady state allocates
// nothing.

#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

namespace commtune {

/// Memory for coroutine frames: freed frames are kept, by size, for the next coroutine of this thread.
/// Frames are freed on the thread that allocated them.
void* allocate_frame(std::size_t bytes);
void free_frame(void* frame, std::size_t bytes) noexcept;

/// A coroutine that starts when it is first awaited or start()ed, and hands its exception to whoever awaits
/// it or asks result(). Owns its frame: destroying an unfinished task destroys what it was in the middle of.
class [[nodiscard]] Task {
 public:
  struct promise_type {
    std::coroutine_handle<> continuation = std::noop_coroutine();
    std::exception_ptr failure;

    static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
    static void operator delete(void* frame, std::size_t bytes) noexcept { free_frame(frame, bytes); }

    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        return self.promise().continuation;
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { failure = std::current_exception(); }
  };

  Task() = default;
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      frame_ = std::exchange(other.frame_, {});
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { destroy(); }

  /// Runs until the first suspension. Once, and not for a task that is awaited.
  void start() { frame_.resume(); }
  bool valid() const { return static_cast<bool>(frame_); }
  bool done() const { return frame_ && frame_.done(); }
  /// Of a task that is done: rethrows what it threw.
  void result() const {
    if (frame_.promise().failure) std::rethrow_exception(frame_.promise().failure);
  }

  /// Waits, in another task, for the end of one that was start()ed: `co_await task.ended()`; rethrows what it
  /// threw.
  auto ended() {
    struct Awaiter {
      Task& task;
      bool await_ready() const noexcept { return task.done(); }
      void await_suspend(std::coroutine_handle<> awaiting) const noexcept {
        task.frame_.promise().continuation = awaiting;
      }
      void await_resume() const { task.result(); }
    };
    return Awaiter{*this};
  }

  bool await_ready() const noexcept { return !frame_ || frame_.done(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    frame_.promise().continuation = awaiting;
    return frame_;
  }
  void await_resume() const {
    if (frame_) result();
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  void destroy() {
    if (frame_) frame_.destroy();
  }

  std::coroutine_handle<promise_type> frame_;
};

}  // namespace commtune
