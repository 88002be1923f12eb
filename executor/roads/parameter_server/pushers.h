#pragma once
// Who pushes what to parameter servers. Without a local sum a message is one part, which every worker pushes;
// with one it is cut as inside_host.h says, and part l is pushed by the l-th worker of every host.

#include <span>
#include <vector>

#include "executor/roads/host_layout.h"
#include "perfmodel/plan.h"

namespace commtune {

class Pushers {
 public:
  Pushers(const ParameterServer& road, const HostLayout& hosts);

  int parts() const { return static_cast<int>(workers_.size()); }
  /// Who pushes a part, in rank order.
  std::span<const int> of(int part) const { return workers_[static_cast<std::size_t>(part)]; }
  /// The part that a worker pushes; -1: none, since its host has more workers than the smallest.
  int part_of(int worker) const { return part_of_[static_cast<std::size_t>(worker)]; }

 private:
  std::vector<std::vector<int>> workers_;
  std::vector<int> part_of_;
};

}  // namespace commtune
