#pragma once
// A plan is data: road, messages, order, credit, barrier. Methods construct it, the simulator predicts it,
// the executor runs it, the store keeps it, exporters translate it. File format "commtune/plan/1".

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/profile.h"
#include "perfmodel/tensor_layout.h"

namespace commtune {

/// Half-open byte range [offset, offset + length) of one gradient tensor. Whole elements only.
struct Piece {
  TensorId tensor = 0;
  Bytes offset;
  Bytes length;
  bool operator==(const Piece&) const = default;
};

/// What travels as one. Several tensors: fusion. Part of one: partition. Both at once is allowed.
struct Message {
  std::vector<Piece> pieces;  ///< at least one
  bool operator==(const Message&) const = default;
};

/// How an all-reduce road sums and hands back; MODEL.md section 4.2 has the costs.
enum class Collective {
  kRing,
  kHalvingDoubling,
  kRecursiveDoubling,  ///< one stage only: every rank ends with the sum; nothing is left to distribute
  kOneShot,            ///< every rank sends all it has to every other; one stage only
  kDoubleBinaryTree,
  kHierarchical,  ///< reduce-scatter inside a host, ring between hosts, all-gather inside
  kLibrary,       ///< a library's own collectives (Open MPI's choice, NCCL's choice)
};

struct AllReduce {
  Collective algorithm = Collective::kRing;
  bool operator==(const AllReduce&) const = default;
};

enum class Placement {
  kColocated,  ///< servers live in S workers' processes and share their network cards
  kDedicated,  ///< servers are ranks of their own, on hosts of their own
};

enum class Assignment {
  kEven,    ///< each message is cut evenly over all S servers
  kHashed,  ///< each message goes whole to one server: the plan's, or in turn (message index mod S)
};

enum class LocalSum {
  kNone,   ///< every worker pushes its own gradients
  kFirst,  ///< the workers of a host sum among themselves first, and each pushes its part of the host's sum;
           ///< the servers' answers go the same way back. The smallest host's number of workers is the
           ///< number of parts.
};

struct ParameterServer {
  int servers = 1;  ///< S >= 1
  Placement placement = Placement::kColocated;
  Assignment assignment = Assignment::kEven;
  LocalSum local_sum = LocalSum::kNone;
  int first = 0;  ///< colocated: server i lives in worker (first + i) mod N, so that slow hosts can be spared
  bool operator==(const ParameterServer&) const = default;
};

using Road = std::variant<AllReduce, ParameterServer>;

/// Whether workers need each other before anything reaches a server, so that all of them must start messages
/// in the same order: all-reduce roads, and servers behind a local sum.
bool needs_one_order(const Road& road);

/// Whether the sum and its distribution can run apart; otherwise every worker has the sum when the first
/// ends.
bool has_two_stages(const Road& road);

/// Whether a decoupled plan may run the two stages as steps of their own: all-reduce roads with two stages,
/// and a library's, whose all-reduce shows none but which has a collective for each. Servers answer while
/// others still push, so a push and its pull are one operation.
bool may_be_decoupled(const Road& road);

/// Whether a message goes to servers and comes back from them, not from worker to worker.
bool goes_through_servers(const Road& road);

/// How many servers get whole messages, one each; 0 on roads where none does.
int whole_message_servers(const Road& road);

/// Whether what comes back from servers may be cut otherwise than what was pushed (Plan::pulls): where all
/// servers have a part of everything, and workers push their own gradients.
bool may_pull_apart(const Road& road);

/// When a message may start.
enum class Release {
  kGradient,  ///< as soon as the last gradient that it carries exists (wait-free back-propagation)
  kBackward,  ///< only after the whole backward pass (BSP)
};

/// Which of the messages that may start goes first.
enum class Order {
  kList,      ///< strictly in the plan's list (or sequence) order, on every rank; the only order that a road
              ///< may have which needs_one_order()
  kPriority,  ///< the released message with the smallest priority value
};

/// What the next forward pass waits for.
enum class Barrier {
  kFull,      ///< all gradients (BSP, WFBP, MG-WFBP, DDP)
  kPerLayer,  ///< each layer for its own tensors (ByteScheduler, iPart, DeAR, ours)
};

enum class Stage : std::uint8_t {
  kReduce,      ///< reduce-scatter, or push and sum
  kDistribute,  ///< all-gather, or pull
};

/// One step of a decoupled plan: one stage of one message.
struct Step {
  std::uint32_t message = 0;  ///< of a distribute in a plan with pulls: the number of the pull
  Stage stage = Stage::kReduce;
  bool operator==(const Step&) const = default;
};

/// What gradients are cast to while they travel. Sums are in that type, at each hop of the road.
enum class WireFormat {
  kAsIs,  ///< nothing: they travel as the model has them, and nothing is lost
  kBfloat16,
  kFloat16,
};

struct Plan {
  std::string method;   ///< who constructed it: "wfbp-a2a", "joint", ...; never decides anything
  std::string model;    ///< profile's name
  std::string profile;  ///< digest(profile) that it was made for: whose times it was chosen by
  std::string layout;   ///< layout_digest(profile): what it carries; empty in plans of before there was one
  int workers = 1;      ///< N
  Road road = AllReduce{};
  std::string library;                  ///< kLibrary: whose, "nccl"; empty: the one where gradients lie
  std::string transport;                ///< that it wants; empty: the one that its cluster was probed over
  WireFormat wire = WireFormat::kAsIs;  ///< of every message; a cast one needs gradients of float32
  std::vector<Message> messages;        ///< every byte of every tensor exactly once
  std::vector<std::int32_t> priority;   ///< one per message, smaller is more urgent; unique
  Release release = Release::kGradient;
  Order order = Order::kList;
  /// Empty: coupled, each message runs both stages as one operation, in list order. Otherwise decoupled:
  /// every (message, stage) once, a reduce before its distribute; a step starts after all earlier steps have
  /// started, a distribute also after its own reduce has ended on this rank. Needs may_be_decoupled(), or
  /// pulls.
  std::vector<Step> sequence;
  /// What comes back as one, where that is not what was pushed as one: every byte of every tensor exactly
  /// once. Empty: each message comes back as it went. With pulls the messages are what is pushed, and the
  /// sequence has every message's reduce and every pull's distribute once; a pull is asked for after all
  /// messages that carry its bytes have been pushed, and nothing holds it back but the steps before it.
  /// Servers that share their cards with workers send what is asked for before those push more. Needs
  /// may_pull_apart().
  std::vector<Message> pulls;
  Barrier barrier = Barrier::kFull;
  /// One per message where servers take messages whole: which of them takes it, 0 to S - 1. Empty: in turn.
  std::vector<std::uint32_t> server;
  /// A message may start when those started before it have no more than this left to send (0: when they have
  /// sent everything), so that it fills the wire where they would leave it idle and does not share it with
  /// them before. Other than 0 it holds back what no rank has begun: a message of which something comes from
  /// a peer starts, where a transport can tell (Transport::came_early). With parameter servers what counts is
  /// the push: the way back depends on what the other workers chose to push, and two of them would wait for
  /// each other. In bytes on the wire.
  Bytes credit;
  /// One per message: its own in place of the credit, so that how much is in flight may vary over the
  /// iteration. Of a decoupled plan's message it holds for both stages. Empty: the credit for all.
  std::vector<Bytes> window;
  /// What a rank sends to other hosts at most, in bytes a second: the rate of the links that the plan was
  /// priced on. Faster than that, bytes queue in the network, where nothing urgent overtakes them. 0: not
  /// known. What the plan is does not depend on it, nor does its digest.
  double pace = 0;
  bool operator==(const Plan&) const = default;
};

/// Of gradients, as the layout has them.
Bytes message_bytes(const Message& message);

/// What messages started before this one may have left to send when it starts.
Bytes credit_of(const Plan& plan, std::size_t message);

/// What a message of so many bytes of gradients has on the wire: of float32, half of them where it is cast.
Bytes bytes_on(WireFormat wire, Bytes gradients);
Bytes wire_bytes(const Plan& plan, const Message& message);

/// By their names in plans, requests and flags.
inline constexpr std::pair<std::string_view, WireFormat> kWireFormats[] = {
    {"as-is", WireFormat::kAsIs}, {"bf16", WireFormat::kBfloat16}, {"fp16", WireFormat::kFloat16}};
/// Those that lose something.
inline constexpr WireFormat kCasts[] = {WireFormat::kBfloat16, WireFormat::kFloat16};
inline constexpr std::pair<std::string_view, Barrier> kBarriers[] = {{"full", Barrier::kFull},
                                                                     {"per-layer", Barrier::kPerLayer}};

/// The type of what travels.
DataType wire_type(WireFormat wire, DataType gradients);

/// Whether a message is one stretch of memory where gradients lie side by side in the order in which they
/// appear (the last tensor first): it travels from there and back without a fusion buffer. DDP calls such
/// gradients views of its buckets.
bool is_one_stretch(const Message& message, const std::vector<TensorRef>& tensors);

/// Bytes that each server of the plan's road sums in an iteration; empty on roads without servers. Evenly cut
/// messages count as exactly even.
std::vector<double> server_loads(const Plan& plan);

/// The busiest server's bytes over their mean: 1 where all sum as much, and on roads without servers.
double server_imbalance(const Plan& plan);

/// Number of processes the plan runs on: workers, plus dedicated servers if any.
int ranks_of(const Plan& plan);

/// Throws Error{kBadInput} naming the first rule broken: every tensor byte covered exactly once, whole
/// elements, priorities present and unique, a road that needs one order in list order, 1 <= S <= N when
/// colocated, gradients of float32 where they are cast, the profile's layout equal. A plan without a layout
/// suits the profile with its very digest only.
void check(const Plan& plan, const Profile& profile);
/// The same for who knows what travels and not how long layers compute. A plan without a layout is taken by
/// its pieces alone.
void check(const Plan& plan, const TensorLayout& layout);

/// Reads "commtune/plan/1". Errors as in profile_from_json.
Plan plan_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Plan& plan);

/// 16 hexadecimal digits over everything but `method`; ranks compare it before the first step. What a plan
/// leaves out does not enter it, so plans from before there was such a thing keep theirs.
std::string digest(const Plan& plan);

std::string to_string(Collective algorithm);  ///< "ring", "halving-doubling", ...
std::string to_string(Placement placement);   ///< "colocated", "dedicated"
std::string to_string(WireFormat wire);       ///< "as-is", "bf16", "fp16"
/// Throws Error{kBadInput} for any other name.
WireFormat wire_format_named(const std::string& name);
std::string to_string(Barrier barrier);  ///< "full", "per-layer"
/// Throws Error{kBadInput} for any other name.
Barrier barrier_named(const std::string& name);
std::string describe(const Road& road);  ///< "all-to-all ring", "4 colocated servers",
                                         ///< "2 dedicated servers, hashed, local sum first"
/// Its road, and what it casts to: "all-to-all ring, cast to bf16".
std::string describe_road(const Plan& plan);

}  // namespace commtune
