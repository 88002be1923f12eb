#pragma once
// A server's sums that workers ask for when they want them (Plan::pulls): complete ones are kept until every
// worker has had its answer.

#include <cstdint>
#include <vector>

#include "executor/base/task.h"
#include "executor/memory/buffer.h"
#include "executor/roads/parameter_server/pull_replies.h"
#include "executor/transport/communicator.h"

namespace commtune {

class HeldSums {
 public:
  /// chunks  by number of what is summed as one: how many chunks of it this server has
  HeldSums(Communicator& communicator, int workers, const std::vector<std::size_t>& chunks);

  /// A chunk's sum is complete: whoever has asked for it gets it, in the order of chunks.
  ///
  /// reply   keeps the sum; held here until all workers have been answered
  Task complete(std::uint32_t number, std::size_t chunk, PullReply& reply, Buffer sum);
  /// Another process's worker wants all chunks of a number, once an iteration.
  Task ask(int worker, std::uint32_t number);
  /// So does the worker of this process: `answered`, which it holds for each chunk, is released as each has
  /// been copied to where it wants it.
  ///
  /// into  by chunk
  Task ask_here(std::uint32_t number, std::vector<Buffer> into, Group& answered);

 private:
  struct Held {
    PullReply* reply = nullptr;  ///< not complete, or everybody has been answered: none
    Buffer sum;
    int left = 0;                ///< workers that are to be answered
    std::uint64_t complete = 0;  ///< in how many iterations so far
  };
  /// A worker may be ahead of others by an iteration, and ask again before they have asked once.
  struct Asker {
    bool asked = false;
    std::size_t next = 0;        ///< chunk
    std::uint64_t answered = 0;  ///< in how many iterations so far
  };
  struct Number {
    std::vector<Held> chunks;
    std::vector<Asker> askers;  ///< by worker
    std::vector<Buffer> into;   ///< by chunk, of the worker of this process
    Group* answered = nullptr;
  };
  static bool may_answer(const Number& of, const Asker& asker);
  Task answer(int worker, std::uint32_t number);

  Communicator& communicator_;
  std::vector<Number> numbers_;
};

}  // namespace commtune
