#pragma once
// How workers learn, while they train, before which iteration another plan is adopted. Rank 0 alone decides,
// and between two iterations it may hold itself back but nobody else. So it tells the others of an iteration
// that none can reach before it has done one more itself, and does that one when all have answered that they
// know. What happens then is a collective adoption like any other (adoption.h).

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "executor/base/task.h"
#include "executor/transport/communicator.h"

namespace commtune {

/// One a worker. Notices travel on the thread that has the communicator, the communication thread while a
/// plan is in force; between two of them they do not travel at all.
class AdoptionNotice final : public ProgressSource {
 public:
  /// communicator  outlives this
  /// workers       ranks 0..workers-1, each of which has one of these
  AdoptionNotice(Communicator& communicator, int workers);
  ~AdoptionNotice() override;

  /// Expects notices from now on. While no engine uses the communicator; again does nothing.
  void begin();

  /// The iteration before which a plan is adopted; 0: none is announced. From any thread, at the cost of
  /// reading a number.
  std::uint64_t first() const { return first_.load(std::memory_order_acquire); }
  /// Its time has come: none is announced any more.
  void clear() { first_.store(0, std::memory_order_relaxed); }

  /// On rank 0, from any thread, after begin() and where none is announced.
  void tell(std::uint64_t first);
  /// On rank 0: comes back when every worker knows of what was told last.
  ///
  /// check   called a few times a second: throws what has ended the communication thread
  /// throws  Error{kTimeout} naming a worker that has not answered
  void wait_until_known(const std::function<void()>& check, Deadline until);

  /// Collective, while no engine uses the communicator: no notice comes any more, and none is on its way.
  void end(Deadline until);

  void progress(std::vector<std::coroutine_handle<>>& resumable) override;

 private:
  struct NextNotice;
  Task send_notices();
  Task receive_notices();
  Task ended() { co_await task_.ended(); }
  void note_known(int worker);

  Communicator& communicator_;
  const int workers_;
  std::atomic<std::uint64_t> first_{0};
  // On rank 0:
  std::atomic<std::uint64_t> to_tell_{0};  // 0: nothing
  std::coroutine_handle<> sender_;         // that waits for something to tell
  std::mutex mutex_;                       // guards the two below
  std::condition_variable known_changed_;
  std::vector<bool> known_;  // by worker: what was told last
  Task task_;                // of the communicator's thread, begun and destroyed here
};

}  // namespace commtune
