#pragma once
// What the cards of a job whose gradients go through servers carry. MODEL.md section 4.3.

#include "perfmodel/cost/topology.h"
#include "perfmodel/plan.h"

namespace commtune {

/// Who pushes to the servers.
struct Push {
  double bytes;    ///< as so many workers' gradients: each worker's, or with a local sum one sum per host
  double workers;  ///< how many push a part
};
Push push_of(const ParameterServer& road, const Topology& place);

/// Bytes, as parts of a message, that pass the busiest cards in one direction; a card that is slow counts for
/// as many times more.
struct CardLoad {
  double stage = 0;           ///< one stage of a message over all servers, on average
  double together = 0;        ///< both stages at once, where they share a direction
  double one = 0;             ///< one stage of a message that goes whole to a server, at worst
  bool servers_bind = false;  ///< a card with servers on it is busier than every card without
  bool workers_bind = false;  ///< a card without servers is busier than every card with them
  double latency = 1;         ///< of the slowest card
};

/// A host with w of the N workers and s of the S servers sends w (S-s)/S m of its own push and s (N-w)/S m of
/// its servers' answers; on dedicated hosts one of the two is nothing. With a local sum w is 1, and N the
/// number of hosts.
CardLoad load_of(const ParameterServer& road, const Topology& place);

}  // namespace commtune
