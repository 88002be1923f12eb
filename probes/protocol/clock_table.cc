#include "probes/protocol/clock_table.h"

#include <algorithm>

namespace commtune::probes {

ClockTable::ClockTable(int ranks, Nanoseconds memory)
    : trips_(static_cast<std::size_t>(ranks)), memory_(memory) {}

void ClockTable::add(int rank, const RoundTrip& trip) {
  std::deque<RoundTrip>& trips = trips_[static_cast<std::size_t>(rank)];
  while (!trips.empty() && trips.back().duration() >= trip.duration()) trips.pop_back();
  trips.push_back(trip);
  while (trips.size() > 1 && trips.front().returned + memory_ < trip.returned) trips.pop_front();
}

Nanoseconds ClockTable::ahead(int rank) const {
  const std::deque<RoundTrip>& trips = trips_[static_cast<std::size_t>(rank)];
  return trips.empty() ? Nanoseconds{0} : trips.front().ahead();
}

Nanoseconds ClockTable::round_trip(int rank) const {
  const std::deque<RoundTrip>& trips = trips_[static_cast<std::size_t>(rank)];
  return trips.empty() ? Nanoseconds{0} : trips.front().duration();
}

Nanoseconds ClockTable::slowest_round_trip() const {
  Nanoseconds slowest{0};
  for (int rank = 0; rank < static_cast<int>(trips_.size()); ++rank) {
    slowest = std::max(slowest, round_trip(rank));
  }
  return slowest;
}

}  // namespace commtune::probes
