#pragma once
// Sums on their way from a server to workers: each is kept until all that is sent of it has left.

#include <memory>
#include <vector>

#include "executor/memory/pool.h"
#include "executor/transport/communicator.h"

namespace commtune {

struct PullReply {
  Scratch::Block total;
  Group sends;
};

class PullReplies {
 public:
  /// A reply of this sum, which is over when its sends have ended; until the first it has to be held.
  PullReply& start(Scratch::Block total);
  /// Whether none is under way.
  bool empty();

 private:
  void reap();

  std::vector<std::unique_ptr<PullReply>> under_way_, idle_;
};

}  // namespace commtune
