#include "executor/roads/parameter_server/pushers.h"

namespace commtune {

Pushers::Pushers(const ParameterServer& road, const HostLayout& hosts) {
  const bool sums = road.local_sum == LocalSum::kFirst;
  const int parts = sums ? hosts.smallest() : 1;
  workers_.resize(static_cast<std::size_t>(parts));
  for (int worker = 0; worker < hosts.workers(); ++worker) {
    const int part = sums ? hosts.local(worker) : 0;
    part_of_.push_back(part < parts ? part : -1);
    if (part < parts) workers_[static_cast<std::size_t>(part)].push_back(worker);
  }
}

}  // namespace commtune
