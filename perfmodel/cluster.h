#pragma once
// What the probes found out about a cluster: the input of every prediction. File format "commtune/cluster/1".

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/device_kind.h"
#include "perfmodel/fit/curve.h"
#include "perfmodel/nccl/tuning.h"
#include "perfmodel/plan.h"
#include "perfmodel/transfer_traits.h"

namespace commtune {

/// How many times as slow a host is as the fits and profiles say; 1: no different. Positive.
struct HostSlowdown {
  double latency = 1;        ///< start-up of messages between it and other hosts
  double time_per_byte = 1;  ///< of its network card, either direction
  double compute = 1;        ///< forward, backward and update times of its ranks
  bool operator==(const HostSlowdown&) const = default;
};

struct Host {
  std::string name;
  int slots = 1;  ///< ranks that it carries
  HostSlowdown slowdown{};
};

/// What two ranks have between them.
enum class LinkClass { kIntraHost, kInterHost };

/// One message from rank to rank. MODEL.md section 4.1: blocking cost a + m*b; occupancy o + m*b when many
/// are in flight.
struct LinkFit {
  Fit alone;     ///< one way, one message in flight: latency l + occupancy
  Fit streamed;  ///< per message, many in flight one way: occupancy only
  Fit duplex;    ///< per message, many in flight both ways at once; empty when not measured
};

/// What a probe timed as one operation, from the last rank's start to the last rank's end.
enum class Operation {
  kAllReduce,      ///< both stages of an all-reduce road
  kReduceScatter,  ///< its first stage
  kAllGather,      ///< its second stage
  kPushPull,       ///< both stages of a parameter-server road
  kPush,           ///< push and sum at the servers
  kPull,           ///< the sums' way back
};

/// Cost of an operation on a road at the N (and S) at which it was measured.
struct OperationFit {
  Road road;
  Operation operation = Operation::kAllReduce;
  int workers = 2;
  Fit alone;     ///< one message at a time
  Fit streamed;  ///< per message, several in flight
};

/// Cost of a collective of NCCL's among the first ranks, one at a time, by a tuning that it was told to take.
/// By its own choice as well, for comparing: plans are priced by the road `library`.
struct NcclFit {
  Operation operation = Operation::kAllReduce;  ///< or one of its stages
  NcclTuning tuning;
  int workers = 2;
  Fit alone;
};

/// Median and spread of a quantity that has no size.
struct Scalar {
  double value = 0;
  double half_width = 0;  ///< of its 95 % interval
};

/// What it costs a rank to send gradients of float32 in a shorter type, per byte on the wire.
struct CastCosts {
  Scalar cast_seconds_per_byte;    ///< to that type, and the sum back
  Scalar reduce_seconds_per_byte;  ///< adding one byte into another
};
using Casts = std::map<WireFormat, CastCosts>;

/// What GPUs take besides, where messages lie in theirs. Of ranks that all do it at once.
struct GpuCosts {
  Scalar launch_seconds;             ///< a kernel of next to no work, from its call until its end is noticed
  Scalar upload_seconds_per_byte;    ///< copying from the host's pinned memory
  Scalar download_seconds_per_byte;  ///< and back
};

struct Cluster {
  std::string name;
  std::string transport;    ///< "mpi", ...
  std::string fingerprint;  ///< digest of hosts, processors, kernel, library versions, interface, MTU
  std::map<std::string, std::string> facts;  ///< what the fingerprint was made of
  std::vector<Host> hosts;

  TransferTraits traits;                  ///< with which everything below was measured
  DeviceKind device = DeviceKind::kHost;  ///< in whose memory its messages lay
  std::map<LinkClass, LinkFit> links;
  std::vector<OperationFit> operations;
  std::vector<NcclFit> nccl;  ///< where GPUs were probed

  Scalar reduce_seconds_per_byte;  ///< gamma: adding one byte of gradient into another
  Scalar copy_seconds_per_byte;    ///< copying one byte into a fusion buffer
  Casts casts;                     ///< of the types that were probed
  GpuCosts gpu;                 ///< where GPUs were probed. In what roads cost already; not priced by itself
  Scalar interference;          ///< kappa: compute slows by this ratio while bytes move
  Scalar contention;            ///< traffic takes longer by this ratio while compute runs
  Scalar head_of_line_seconds;  ///< what sockets hold ahead of a server's busy card, which nothing overtakes
  Scalar connection_head_of_line_seconds;  ///< what one connection holds ahead of a busy card, on all-reduce
                                           ///< roads
  Scalar jitter_seconds;  ///< standard deviation of a fixed compute step between ranks and iterations

  Deviation formula_deviation;  ///< of what formulas say of a road that was not measured
  double plan_deviation = 0;    ///< relative, of what plans take beside what roads cost; 0: not known

  /// What is priced on this cluster casts its messages, whose sizes are those on the wire. Set by cast_to()
  /// of cost/plan_cost.h; never stored.
  WireFormat wire = WireFormat::kAsIs;

  /// The same hosts over other transports, each with what was measured over it; these have no others. Empty:
  /// it was probed over one.
  std::vector<Cluster> others;

  int ranks() const;  ///< sum of slots
};

/// The cluster over the transport of this name: itself, or one of its others. Empty: itself.
/// Throws Error{kNotFound} naming those that it was probed over.
const Cluster& over_transport(const Cluster& cluster, std::string_view transport);
Cluster& over_transport(Cluster& cluster, std::string_view transport);

/// The cluster over each of its transports, itself first.
std::vector<const Cluster*> over_each_transport(const Cluster& cluster);

/// "tcp, mpi"
std::string transports_of(const Cluster& cluster);

/// The fit for exactly this road, operation and number of workers, if it was measured.
const OperationFit* find_operation(const Cluster& cluster, const Road& road, Operation operation,
                                   int workers);

/// What a long message reaches between two hosts, in bytes a second; 0: not known.
double link_rate(const Cluster& cluster);

/// Reads "commtune/cluster/1". Errors as in profile_from_json.
Cluster cluster_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Cluster& cluster);

std::string to_string(Operation operation);  ///< "all-reduce", "push-pull", ...
std::string to_string(LinkClass link);       ///< "intra-host", "inter-host"

}  // namespace commtune
