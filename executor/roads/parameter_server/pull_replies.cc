#include "executor/roads/parameter_server/pull_replies.h"

#include <utility>

namespace commtune {

PullReply& PullReplies::start(Scratch::Block total) {
  reap();
  if (idle_.empty()) idle_.push_back(std::make_unique<PullReply>());
  under_way_.push_back(std::move(idle_.back()));
  idle_.pop_back();
  under_way_.back()->total = std::move(total);
  return *under_way_.back();
}

bool PullReplies::empty() {
  reap();
  return under_way_.empty();
}

void PullReplies::reap() {
  for (std::size_t i = 0; i < under_way_.size();) {
    if (under_way_[i]->sends.pending() > 0) {
      ++i;
      continue;
    }
    under_way_[i]->total = {};
    idle_.push_back(std::move(under_way_[i]));
    under_way_[i] = std::move(under_way_.back());
    under_way_.pop_back();
  }
}

}  // namespace commtune
