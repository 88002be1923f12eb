#include "executor/roads/host_layout.h"

#include <algorithm>
#include <map>

namespace commtune {

HostLayout::HostLayout(const Peers& peers, int workers) : smallest_(workers) {
  std::map<int, int> number_of_node;
  for (const int node : peers.node) {
    const int next = static_cast<int>(number_of_node.size());
    host_of_.push_back(number_of_node.try_emplace(node, next).first->second);
  }
  all_hosts_ = static_cast<int>(number_of_node.size());
  for (int worker = 0; worker < workers; ++worker) {
    const auto host = static_cast<std::size_t>(host_of(worker));
    if (host == workers_of_.size()) workers_of_.emplace_back();
    local_.push_back(static_cast<int>(workers_of_[host].size()));
    workers_of_[host].push_back(worker);
  }
  for (const std::vector<int>& here : workers_of_) {
    smallest_ = std::min(smallest_, static_cast<int>(here.size()));
  }
}

}  // namespace commtune
