#pragma once
// How soon a thread runs that wakes up on a busy processor.

#include <cstdint>

namespace commtune {

/// While it lives, the thread that made it runs soon after it wakes up, though others compute on all cores:
/// it asks the kernel for turns of 100 us, where threads have 3 ms unless told otherwise, and of those that
/// wait the one with the earliest deadline is next (EEVDF: Stoica, Abdel-Wahab 1995). Its share of the
/// processor stays as it is, and no privilege is needed. Linux before 6.12 knows no such request; then, and
/// where a thread has another policy than the usual one, nothing changes.
class ShortTurns {
 public:
  ShortTurns();
  ~ShortTurns();  ///< by the same thread
  ShortTurns(const ShortTurns&) = delete;
  ShortTurns& operator=(const ShortTurns&) = delete;

 private:
  std::uint64_t before_ = 0;  // nanoseconds of a turn
  bool asked_ = false;
};

/// Nanoseconds of a turn of a thread of this process (0: the calling one); 0 where the kernel does not say.
std::uint64_t turn_of_thread(int thread);

}  // namespace commtune
