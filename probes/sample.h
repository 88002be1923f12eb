#pragma once
// What a probe measured: one record per quantity and size, as it is stored, refitted and resumed from.

#include <compare>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "perfmodel/base/json_reader.h"
#include "perfmodel/cluster.h"
#include "perfmodel/cost/road_factor.h"
#include "perfmodel/fit/fit.h"
#include "perfmodel/nccl/tuning.h"
#include "perfmodel/plan.h"

namespace commtune::probes {

/// What was timed.
enum class Subject {
  kMessage,    ///< one rank to another, one way. In flight 1: half a round trip; more: time per message
  kExchange,   ///< both ways at once between two ranks, several in flight each way: time per message
  kOperation,  ///< a road's operation over a group of ranks; last start to last end, or per message in steady
               ///< state when several are in flight
  kSum,        ///< adding `size` bytes of float32 that are in the cache into a buffer, on all ranks at once
  kCopy,       ///< copying `size` bytes that are not in the cache into a buffer, on all ranks at once
  kCast,     ///< casting what is `size` bytes in a shorter type, out of gradients that are not in the cache,
             ///< and back, on all ranks at once
  kCastSum,  ///< kSum of a shorter type
  kStep,     ///< a fixed compute step, with nothing (in flight 0) or with bytes (in flight > 0) moving
  kJitter,   ///< standard deviation of a fixed compute step between ranks and repetitions
  kHeadOfLine,  ///< how long each round of a message more urgent than all others (a push or an answer, a step
                ///< of a ring) waits while in_flight of the same size are under way on the same road
  kPlan,        ///< an iteration of a whole plan, of which `size` bytes of gradients travel (tuner/check.h)
  kTraffic,   ///< a message of a stream of a road's operations, with or without compute steps beside it: all
              ///< of the stream's time, divided by its messages
  kLaunch,    ///< a kernel of next to no work on a GPU, from its call until its end is noticed
  kUpload,    ///< copying `size` bytes from the host's pinned memory to a GPU's, on all ranks at once
  kDownload,  ///< and back
};

/// The thing that is measured, apart from the size. Fields that a subject has no use for keep their defaults,
/// so that equal quantities compare equal.
struct Quantity {
  Subject subject = Subject::kMessage;
  Road road;                                    ///< kOperation, kHeadOfLine, kTraffic, kPlan
  Operation operation = Operation::kAllReduce;  ///< kOperation, kHeadOfLine, kTraffic
  int workers = 0;  ///< kOperation, kHeadOfLine, kTraffic, kPlan: N of the group, its first ranks
  int source = -1,
      destination =
          -1;  ///< ranks: kMessage, kExchange; source alone (whose time counts): what happens on memory
  int in_flight = 1;                    ///< messages under way at the same time, each way
  WireFormat wire = WireFormat::kAsIs;  ///< kCast, kCastSum
  NcclTuning nccl{};                    ///< kOperation on the road `library`: that NCCL was told to take
  bool computing = false;               ///< kTraffic: while compute steps run
  bool operator==(const Quantity&) const = default;
};

/// Timed many times in one command: nothing has to be synchronised in between.
bool is_back_to_back(const Quantity& quantity);

/// What a run of a plan told of its road's costs.
struct PlanCosts {
  std::string plan{};   ///< its digest
  Seconds predicted{};  ///< by the costs from before
  /// On the road's costs as the other samples have them: all that is known by now.
  CostFactor alone{}, streamed{};
  bool operator==(const PlanCosts&) const = default;
};

/// {"startup_factor": 1.3, "rate_factor": 1.1, "startup_deviation_ratio": 0.2, "rate_deviation_ratio": 0.1,
///  "opposed": true}
nlohmann::json to_json(const CostFactor& factor);
/// {"plan": "0123456789abcdef", "predicted_seconds": 0.2, "cost_factor": 1.2, "cost_deviation_ratio": 0.2},
/// with what to_json(CostFactor) gives of streams where start-ups and times per byte are not off alike, and
/// in "alone" that of messages that have the road to themselves where it is not the streams': the first four
/// were for programs that know no others.
nlohmann::json to_json(const PlanCosts& costs);
/// Throws Error{kBadInput} naming the key, the value and the rule.
PlanCosts plan_costs_from_json(const JsonPlace& place);

/// One measured size of one quantity.
struct ProbeSample {
  Quantity quantity;
  Sample sample;
  std::vector<double> raw_seconds;  ///< every repetition in the order measured; may be empty
  PlanCosts costs{};                ///< kPlan
  bool operator==(const ProbeSample& other) const;
};

/// "all-reduce, all-to-all ring, 4 workers, 1 in flight", "message 0 -> 3, 8 in flight", "sum",
/// "plan, all-to-all ring, 4 workers".
std::string describe(const Quantity& quantity);

/// {"subject": "operation", "road": {"kind": "all-to-all", "algorithm": "ring"}, "operation": "all-reduce",
///  "workers": 4, "in_flight": 1, "size_bytes": 4096, "seconds": 1.2e-3, "half_width_seconds": 1e-5,
///  "repetitions": 12, "raw_seconds": [...]}; source and destination where they mean something; of a plan
/// what to_json(PlanCosts) gives in place of the operation; "wire": "bf16" of casts; "nccl": "Ring+LL128"
/// where NCCL was told so; "computing": true of traffic beside compute steps.
nlohmann::json to_json(const ProbeSample& sample);
/// Throws Error{kBadInput} naming the key, the value and the rule.
ProbeSample probe_sample_from_json(const nlohmann::json& json);

/// Whether it is of an operation on a road.
bool of_operation(Subject subject);

std::string to_string(Subject subject);  ///< "message", "exchange", "operation", ...

}  // namespace commtune::probes
