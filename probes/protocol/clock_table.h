#pragma once
// How far the clocks of other ranks are ahead of this one's, from messages that went there and back: the four
// time stamps of NTP (Mills, RFC 5905), of which the fastest recent round trip counts, since its two ways
// were least delayed and so most alike. Error: at most half the difference between the two ways of that round
// trip.

#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "probes/moments.h"

namespace commtune::probes {

/// Sent here, received there, answered there, returned here.
struct RoundTrip {
  Nanoseconds sent, received, answered, returned;
  Nanoseconds duration() const { return (returned - sent) - (answered - received); }
  Nanoseconds ahead() const { return ((received - sent) + (answered - returned)) / 2; }
};

class ClockTable {
 public:
  /// memory  round trips older than this are forgotten, so that drift does not add up
  explicit ClockTable(int ranks, Nanoseconds memory = std::chrono::seconds(5));

  void add(int rank, const RoundTrip& trip);
  /// The rank's clock minus this one's; 0 for a rank that was never asked (such as this one).
  Nanoseconds ahead(int rank) const;
  /// Fastest recent round trip to a rank; 0 if none.
  Nanoseconds round_trip(int rank) const;
  /// The slowest of those, over all ranks.
  Nanoseconds slowest_round_trip() const;

 private:
  /// By rank, the round trips that are or may become the fastest within the memory: sorted by time, and each
  /// slower than the one before it, which is forgotten first.
  std::vector<std::deque<RoundTrip>> trips_;
  Nanoseconds memory_;
};

}  // namespace commtune::probes
