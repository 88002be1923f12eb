#pragma once
// Where the ranks of a run are, for roads that sum inside hosts and for what shares their cards.

#include <span>
#include <vector>

#include "executor/transport/transport.h"

namespace commtune {

/// Which workers share which host. Filled once a run, in O(ranks log ranks), and then only read: every answer
/// takes the same time however many ranks there are. Keeps nothing of what it was made from.
///
/// Hosts are numbered by their first rank. Workers are the first ranks, so that hosts which carry any come
/// before those of dedicated servers alone.
class HostLayout {
 public:
  /// workers  ranks 0..workers-1 of `peers`; dedicated servers follow
  HostLayout(const Peers& peers, int workers);

  int ranks() const { return static_cast<int>(host_of_.size()); }
  int workers() const { return static_cast<int>(local_.size()); }
  /// The host of any rank.
  int host_of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  /// How many workers of the same host come before this one.
  int local(int worker) const { return local_[static_cast<std::size_t>(worker)]; }

  /// Hosts that carry workers, and all of them.
  int worker_hosts() const { return static_cast<int>(workers_of_.size()); }
  int all_hosts() const { return all_hosts_; }
  /// The workers of a host that carries some, in rank order.
  std::span<const int> workers_of(int host) const { return workers_of_[static_cast<std::size_t>(host)]; }
  /// The number of workers on the host with the fewest of them.
  int smallest() const { return smallest_; }

 private:
  std::vector<int> host_of_, local_;  // by rank, by worker
  std::vector<std::vector<int>> workers_of_;
  int all_hosts_ = 0, smallest_ = 0;
};

}  // namespace commtune
