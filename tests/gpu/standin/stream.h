#pragma once
// Streams and events of the stand-in: what is put on a stream is done in order by a thread of its own, beside
// what other streams do.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace commtune::standin {

/// Whether this thread is in a function that a stream calls on the host: there nothing of CUDA may be called.
bool in_host_function();

class WorkStream {
 public:
  WorkStream();
  /// Ends after what it was given: waits for its thread where there is nothing left to do, else leaves it
  /// behind.
  ~WorkStream();
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;

  void put(std::function<void()> work);
  /// The same, but marks the thread as in_host_function().
  void call(std::function<void()> work);
  void synchronize();
  bool is_idle();

 private:
  /// Outlives the object: what was given to it goes on.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> works;
    bool busy = false, closed = false;
  };
  static void work(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

/// A place in a stream, which each record() moves.
class StreamEvent {
 public:
  StreamEvent() : state_(std::make_shared<State>()) {}

  void record(WorkStream& stream);
  void hold(WorkStream& stream) const;
  bool has_passed() const;
  void synchronize() const;
  /// When it was passed last.
  std::chrono::steady_clock::time_point when() const;
  bool was_recorded() const;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t recorded = 0, passed = 0;
    std::chrono::steady_clock::time_point when;
  };
  static void wait_for(State& state, std::uint64_t count);

  std::shared_ptr<State> state_;
};

}  // namespace commtune::standin
