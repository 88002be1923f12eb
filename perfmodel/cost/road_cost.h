#pragma once
// What a message costs on a road: its stages, what they wait for, and how sure that is. MODEL.md section 4.

#include <algorithm>
#include <cstdint>
#include <string>

#include "perfmodel/base/units.h"
#include "perfmodel/cluster.h"
#include "perfmodel/cost/topology.h"
#include "perfmodel/fit/curve.h"
#include "perfmodel/plan.h"

namespace commtune {

/// A message of m bytes that enters an idle channel at time s keeps it busy for occupancy(m) and has
/// ended everywhere at s + alone(m). Where two separate fits cross, the occupancy counts as no more than
/// alone.
struct StageCost {
  Curve alone;
  Curve occupancy;
};

/// Where a cost came from, said in every prediction.
enum class Basis {
  kMeasured,  ///< fitted to this operation at this number of workers and servers
  kFormula,   ///< the formulas of MODEL.md sections 4.2 and 4.3 over link and reduction fits
};

/// How often a message waits for the channel, behind others that are under way: rounds of a collective; a
/// push and an answer through servers.
struct Rounds {
  int reduce = 1;
  int distribute = 1;  ///< 0: one stage only
  double last = 1;     ///< what the last one takes, by what they take on average: little inside a host
  bool first_as_last = false;  ///< the first one takes what the last one does: both are inside a host
  int both() const { return reduce + distribute; }
  /// The last one's part of what a message takes beyond its occupancy.
  double last_share() const { return both() > 1 ? last / both() : 1; }
  double last_share(Stage stage) const {
    if (stage == Stage::kReduce) return first_as_last ? 1 - last / reduce : 1.0 / reduce;
    return distribute > 1 ? last / distribute : 1;
  }
};

/// Where colocated servers in turn are. Hosts with fewer workers than others are not told apart.
struct ServerHosts {
  std::uint32_t all = 0;       ///< hosts that have workers; 0: as many as servers
  std::uint32_t per_host = 1;  ///< servers on one of them
  /// Connections between hosts that are alike are what messages wait for, or those of one of them, where
  /// they push one way and answer the other: not a slow host's card, nor what ranks on one host share.
  bool connections_bind = true;
  std::uint32_t hosts(std::uint32_t servers) const { return all == 0 ? servers : all; }
  std::uint32_t with_servers(std::uint32_t servers) const {
    return std::min(hosts(servers), (servers + per_host - 1) / per_host);
  }
  /// Between which connections are told apart: where one has all servers, each of the others is like any.
  std::uint32_t connected(std::uint32_t servers) const {
    return with_servers(servers) == 1 ? 2 : hosts(servers);
  }
  /// Which of those that have servers this one is on.
  std::uint32_t of(std::uint32_t server, std::uint32_t servers) const {
    return server / per_host % with_servers(servers);
  }
};

/// By how much a road's costs may be off, of messages alone and of streams.
struct CostDeviation {
  Deviation alone, streamed;
  double largest() const { return std::max(alone.largest(), streamed.largest()); }
  bool operator==(const CostDeviation&) const = default;
};

/// How far ranks may be out of step: each begins its next iteration when it has the sum and sockets have
/// taken what it sends, while bytes still leave. MODEL.md section 4.6.
struct Skew {
  RingSkew of_ring;  ///< as far as the links allow
  Seconds most{};    ///< for so long sockets hold what counts as sent
  /// Of a message whose bytes take so many seconds.
  double seconds(double bytes_time) const {
    return std::clamp(of_ring.share * bytes_time - of_ring.latency.count(), 0.0, most.count());
  }
};

enum class CostDetail { kWhole, kTimes };

struct RoadCost {
  StageCost both;                ///< the two stages as one operation (coupled plans, shared channel)
  StageCost reduce;              ///< first stage alone
  StageCost distribute;          ///< second stage alone; costs nothing on one-stage algorithms
  bool shared_channel = true;    ///< false: reduce and distribute use opposite directions (dedicated servers)
  bool through_servers = false;  ///< the credit covers the push alone
  Rounds rounds;
  /// The simulator takes several of an algorithm's rounds as one where there are more of them than this,
  /// since each costs time there.
  int most_rounds = 8;
  /// Of what a message takes alone: so long it is on its way between hosts, where messages do not wait for
  /// each other.
  Seconds on_the_way{};
  /// Of a busy channel, what nothing more urgent overtakes any more.
  Seconds head_of_line{};
  bool opaque = false;   ///< nobody sees how much of a message has been sent before it has ended
  SecondsPerByte copy;   ///< gathering a message into a fusion buffer and scattering it back, per byte
  bool may_part = true;  ///< on a shared channel: the stages may also run as two operations, apart in time
  int in_turn = 0;       ///< each message goes whole to one of so many servers; 1 also where all wait for one
                    ///< host, which has all colocated servers or, being slow, none; 0: all to all servers
  int segments = 1;           ///< into which servers cut a message
  ServerHosts server_hosts;   ///< of colocated servers in turn
  TransferTraits traits;      ///< how their messages are cut
  bool server_binds = false;  ///< the servers (card, incast or summing), not the workers' cards, set the pace
  double interference = 0;    ///< kappa
  Skew skew;                  ///< by which an iteration that ends with one message is shorter
  Seconds straggling{};       ///< expected lateness of the slowest of N workers in one iteration
  CostDeviation deviation;    ///< of its curves: its fits', or the formulas' where they carry it
  Basis basis = Basis::kMeasured;
  Bytes measured_smallest, measured_largest;  ///< range of the fits used
  std::string explanation;                    ///< "measured all-reduce ring, 4 workers, 4 B to 96 MiB"
};

}  // namespace commtune
