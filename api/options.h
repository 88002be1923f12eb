#pragma once
// Each knob once: its name in a request, its flag, what it takes, within which limits, and one line of help.
// Flags, the readers of requests, the commands of jobs and the tests of openapi.yaml are made from these
// rows. A knob's default is its struct's.
//
// A line of help is a phrase: it begins with a small letter and ends without a full stop. What holds when the
// knob is not given stands in `usual` unless it is the struct's value; help shows it as "(default: ...)".

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/base/fields.h"

namespace commtune::api {

/// Sizes are bytes and times seconds in a request; their flags take a unit.
enum class Takes { kTruth, kCount, kCounts, kRatio, kSize, kTime, kName, kNames, kText };

struct Knob {
  std::string_view name;       ///< in the body or the query of a request; empty: no request has it
  std::string_view flag;       ///< "--budget", "-b,--first"; empty: no command has it
  Takes takes = Takes::kText;  ///< what stands there
  double least = 0, most = 0;  ///< of a request's number, or of each in a list; of names: letters at most
  std::string_view help = {};
  std::string_view usual = {};  ///< what holds when it is not given: "all ranks of the cluster"
  std::string_view value = {};  ///< what help calls its value, where its kind does not say: "MOST"

  constexpr Knob within(double its_least, double its_most) const {
    Knob knob = *this;
    knob.least = its_least;
    knob.most = its_most;
    return knob;
  }
  constexpr Knob usually(std::string_view its_usual) const {
    Knob knob = *this;
    knob.usual = its_usual;
    return knob;
  }
  constexpr Knob shown_as(std::string_view its_value) const {
    Knob knob = *this;
    knob.value = its_value;
    return knob;
  }
};

constexpr Knob knob_of(Takes takes, std::string_view name, std::string_view flag, std::string_view help) {
  return {name, flag, takes, 0, 0, help};
}

/// The knob's limits as a field's.
constexpr fields::Whole whole(const Knob& knob) {
  return {static_cast<std::uint64_t>(knob.least), static_cast<std::uint64_t>(knob.most)};
}
constexpr fields::Real real(const Knob& knob) { return {knob.least, knob.most}; }

/// As a field of a request that may be missing.
template <typename Visitor, typename T>
void visit_knob(Visitor& visit, const Knob& knob, T& value) {
  using Value = std::remove_const_t<T>;
  const fields::Field field = fields::optional(fields::Field(knob.name));
  if constexpr (std::same_as<Value, bool>) {
    visit(field, value, fields::Boolean{});
  } else if constexpr (std::same_as<Value, std::string>) {
    visit(field, value, fields::Text{});
  } else if constexpr (std::integral<Value>) {
    visit(field, value, whole(knob));
  } else {
    visit(field, value, real(knob));
  }
}

namespace knob {

inline constexpr double kMostRanks = 4096;
inline constexpr double kLongest = 86'400;                     // seconds
inline constexpr double kLargestProbe = 1'099'511'627'776;     // 1 TiB
inline constexpr double kMostTraffic = 1'125'899'906'842'624;  // 1 PiB

// --- where a job runs, and what is assumed of it -----------------------------------------------------

inline constexpr Knob kWorkers = knob_of(Takes::kCount, "workers", "--workers", "number of workers")
                                     .within(1, kMostRanks)
                                     .usually("all ranks of the cluster");
inline constexpr Knob kNodes = knob_of(Takes::kText, "nodes", "--nodes",
                                       "plan for these hosts of the cluster only, as n1,n2 or tux[0-3,12]")
                                   .usually("all")
                                   .shown_as("LIST");
inline constexpr Knob kNodeCount =
    knob_of(Takes::kCount, "node_count", "--node-count",
            "plan for so many hosts, all like the first; more than the cluster has are assumed")
        .within(1, kMostRanks)
        .usually("those of the cluster");
inline constexpr Knob kDevicesPerNode =
    knob_of(Takes::kCount, "devices_per_node", "--devices-per-node", "workers a host")
        .within(1, 1024)
        .usually("its slots");
inline constexpr Knob kServers =
    knob_of(Takes::kCount, "servers", "--servers", "most servers on the workers' hosts")
        .within(0, kMostRanks)
        .usually("as many as workers");
inline constexpr Knob kDedicatedServers =
    knob_of(Takes::kCount, "dedicated_servers", "--dedicated", "server ranks on hosts of their own")
        .within(0, kMostRanks)
        .usually("none");
inline constexpr Knob kHashed =
    knob_of(Takes::kTruth, "hashed", "--hashed", "also consider servers that take whole messages in turn");
inline constexpr Knob kTransport =
    knob_of(Takes::kName, "transport", "--transport",
            "plan over this one of the transports that the cluster was probed over")
        .usually("all of them, side by side")
        .shown_as("NAME");
/// All that a request, or one of its candidates, may say of where its job runs.
inline constexpr Knob kPlacement[] = {kWorkers,          kNodes, kNodeCount, kDevicesPerNode, kServers,
                                      kDedicatedServers, kHashed};
inline constexpr Knob kBandwidthScale =
    knob_of(Takes::kRatio, "bandwidth_scale", "--bandwidth-scale",
            "what if the network were so many times as fast; such a plan belongs to no fit")
        .within(1e-3, 1e3)
        .shown_as("FACTOR");
inline constexpr Knob kLatencyScale = knob_of(Takes::kRatio, "latency_scale", "--latency-scale",
                                              "what if its latency were so many times as long")
                                          .within(1e-3, 1e3)
                                          .shown_as("FACTOR");
inline constexpr Knob kDeviceSpeedScale = knob_of(Takes::kRatio, "device_speed_scale", "--device-speed-scale",
                                                  "what if the devices were so many times as fast")
                                              .within(1e-3, 1e3)
                                              .shown_as("FACTOR");
inline constexpr Knob kGradientScale = knob_of(Takes::kRatio, "gradient_scale", "--gradient-scale",
                                               "what if gradients had so many times as many bytes")
                                           .within(1e-3, 1e3)
                                           .shown_as("FACTOR");
inline constexpr Knob kBatch = knob_of(Takes::kCount, "batch", "--batch",
                                       "what if a worker had so many samples; layer times grow in proportion")
                                   .within(1, 1 << 20)
                                   .usually("the profile's")
                                   .shown_as("SAMPLES");

// --- how a question is answered ----------------------------------------------------------------------

inline constexpr Knob kDraws =
    knob_of(Takes::kCount, "draws", "--draws", "draws from the fits' doubt; 0: no doubt is computed")
        .within(0, 1024);
inline constexpr Knob kSeed = knob_of(Takes::kCount, "seed", "--seed", "of the draws").within(0, 4294967295);
inline constexpr Knob kThorough =
    knob_of(Takes::kTruth, "thorough", "--thorough",
            "search the settings of named methods so closely that hardly any other is 0.2 % faster; without "
            "it some are 1 % faster or more, and planning takes about a fifth of the time");
inline constexpr Knob kBarrier =
    knob_of(Takes::kName, "barrier", "--barrier",
            "what the program that trains waits for before it uses parameters again, and so what all plans "
            "are priced by: full, all gradients; per-layer, each layer's own")
        .within(0, 16)
        .usually("what each method asks for")
        .shown_as("WHICH");
inline constexpr Knob kWire =
    knob_of(Takes::kName, "wire", "--wire",
            "plan for gradients of float32 that are cast to this type, bf16 or fp16, while they travel and "
            "summed in it: plans that lose something, ranked among themselves, beside no bound")
        .within(0, 16)
        .usually("as they are")
        .shown_as("TYPE");
inline constexpr Knob kKeep =
    knob_of(Takes::kName, "keep", "--keep", "which plans of the ranking are stored");
inline constexpr Knob kStrict = knob_of(Takes::kTruth, "strict", "--strict",
                                        "refuse a fit that was made under other conditions than those last "
                                        "seen (hosts, releases, what is sent), in place of a warning");
inline constexpr Knob kRecommendWorkers =
    knob_of(Takes::kCount, "most", "--recommend-workers",
            "also say how many workers, up to so many, are worth having; some ten times the work")
        .within(1, kMostRanks)
        .usually("do not")
        .shown_as("MOST");
inline constexpr Knob kLeastEfficiency =
    knob_of(Takes::kRatio, "least_efficiency", "--least-efficiency",
            "workers are worth having while they do at least this part of the work of as many single ones")
        .within(0.01, 1);
inline constexpr Knob kExplain = knob_of(
    Takes::kTruth, "explain", "--explain",
    "what binds each method, bounds and costs by road, doubt; the plan's timeline, critical path, what "
    "would help most, and what would change the answer");
inline constexpr Knob kCandidates =
    knob_of(Takes::kText, "candidates", "--candidate",
            "compare places where the job could run, by samples per second: a name, then flags without their "
            "dashes that say where (and cluster=NAME), as 'both nodes=n1,n2 devices-per-node=2'; repeatable")
        .usually("one job")
        .shown_as("'NAME[ FLAG=VALUE]...'");
inline constexpr Knob kPlanTime =
    knob_of(Takes::kTime, "plan_time", "--plan-time",
            "rank what was tried within this time, and say that it is incomplete")
        .within(1, kLongest)
        .usually("no limit");
inline constexpr Knob kCheck =
    knob_of(Takes::kTime, "check", "--check",
            "before answering run the leading plans for about so long, correct the costs of their roads by "
            "what that takes, and plan again; 0: do not. Hosts as for `tune run`; this machine if the "
            "cluster is no other")
        .within(1, kLongest)
        .usually("5s where hosts are named with --hosts, -H or --local, and --verify is not given");
inline constexpr Knob kVerify =
    knob_of(Takes::kCount, "plans", "--verify",
            "replay the chosen plan and those that the doubt cannot tell from it, at most K of them, in turn "
            "until the difference is certain; then the measurement chooses. Hosts as for `tune run`; this "
            "machine if the cluster is no other")
        .within(2, 32)
        .shown_as("[K]");
inline constexpr Knob kVerifyBudget =
    knob_of(Takes::kTime, "budget_seconds", "--verify-budget", "longest time for --verify")
        .within(1, kLongest);

/// Limits of a verification, as a request says them.
inline constexpr Knob kVerifyRequest[] = {kVerify, kVerifyBudget};

// --- a probe -----------------------------------------------------------------------------------------

inline constexpr Knob kProbeBudget =
    knob_of(Takes::kTime, "budget_seconds", "--budget", "longest time for the probe")
        .within(1e-3, kLongest)
        .usually("grows with the hosts, at most 60s");
inline constexpr Knob kFirst =
    knob_of(Takes::kSize, "first_bytes", "-b,--first", "smallest message").within(1, kLargestProbe);
inline constexpr Knob kLast =
    knob_of(Takes::kSize, "last_bytes", "-e,--last", "largest message that a plan may send")
        .within(1, kLargestProbe);
inline constexpr Knob kFactor = knob_of(Takes::kRatio, "", "-f,--factor", "ratio of neighbouring sizes");
inline constexpr Knob kIterations =
    knob_of(Takes::kCount, "", "-n,--iterations", "timed repetitions of a size, at least");
inline constexpr Knob kMostIterations =
    knob_of(Takes::kCount, "", "--max-iterations", "timed repetitions of a size, at most");
inline constexpr Knob kProbeWarmup =
    knob_of(Takes::kCount, "", "-w,--warmup", "repetitions of a size that are not timed");
inline constexpr Knob kWidth =
    knob_of(Takes::kRatio, "", "--width", "a size is done when its median's 95 % interval is this narrow");
inline constexpr Knob kTraffic =
    knob_of(Takes::kSize, "traffic_bytes", "--traffic", "most bytes that a rank may send")
        .within(1, kMostTraffic)
        .usually("no limit");
inline constexpr Knob kProbedServers =
    knob_of(Takes::kCounts, "servers", "--servers", "numbers of colocated servers to probe")
        .within(1, 65'536)
        .usually("1, 2 and all")
        .shown_as("LIST");
inline constexpr Knob kProbedFor =
    knob_of(Takes::kNames, "for", "--for",
            "refine the roads whose costs could change which plans these models get, and end early when "
            "their choices are certain")
        .within(0, 255)
        .usually("all roads count alike")
        .shown_as("MODEL...");
inline constexpr Knob kProbeSeed = knob_of(Takes::kCount, "", "--seed", "of choices made at random");
inline constexpr Knob kNetwork = knob_of(Takes::kName, "", "--network", "what carries the messages")
                                     .usually("what the cluster was probed over, otherwise tcp");
inline constexpr Knob kRunOver =
    knob_of(Takes::kName, "", "--network,--transport", "what carries the messages")
        .usually("what the plan wants, or its cluster was probed over, otherwise tcp");
/// Of a probe's transports: every one that works on all hosts.
inline constexpr std::string_view kAuto = "auto";
inline constexpr Knob kProbedOver =
    knob_of(Takes::kName, "transport", "--network,--transport",
            "what carries the messages; auto: each that works on all hosts in turn, which share the budget")
        .usually("what the cluster was probed over, otherwise tcp");
inline constexpr Knob kFresh =
    knob_of(Takes::kTruth, "fresh", "--fresh", "start over instead of going on from an interrupted probe");
inline constexpr Knob kCompare =
    knob_of(Takes::kTruth, "", "--compare",
            "run iperf3 between the first two hosts before, with RDMA devices perftest's ib_write_bw and "
            "ib_write_lat too, and print what they say beside ours (status 9 when none of them can)");
inline constexpr Knob kSharedHosts = knob_of(Takes::kTruth, "shared_hosts", "--shared-hosts",
                                             "do not refuse when another probe runs on these hosts");
inline constexpr Knob kProbeDevice =
    knob_of(Takes::kName, "device", "--device",
            "whose memory messages lie in: cpu, or cuda: a GPU for each rank, by its number on its host")
        .usually("cpu")
        .shown_as("DEVICE");

/// All that a request for a probe may say.
inline constexpr Knob kProbeRequest[] = {kProbeBudget, kFirst,      kLast,  kTraffic,     kProbedServers,
                                         kProbedFor,   kProbedOver, kFresh, kSharedHosts, kProbeDevice};

// --- a plan that is named, and its run ---------------------------------------------------------------

inline constexpr Knob kPlan =
    knob_of(Takes::kText, "", "PLAN",
            "a plan file, a stored plan's id or the first digits of its digest, or \"latest\"");
inline constexpr Knob kMethods =
    knob_of(Takes::kNames, "methods", "--method",
            "of the plan's ranking: a method, \"chosen\", \"best\", \"worst\" or \"all\"; repeatable")
        .within(0, 64)
        .usually("the plan itself");
inline constexpr Knob kModel =
    knob_of(Takes::kName, "model", "--model",
            "a profile of the same layout whose layer times to use, such as one that was timed again; needed "
            "for a plan file whose profile the database does not have")
        .usually("the plan's own");
inline constexpr Knob kRunStrict = knob_of(
    Takes::kTruth, "strict", "--strict",
    "refuse hosts that are not as they were when the fit behind the prediction was made, in place of a note");
inline constexpr Knob kRunIterations =
    knob_of(Takes::kCount, "iterations", "--iterations", "iterations that are timed").within(1, 100'000);
inline constexpr Knob kRunWarmup =
    knob_of(Takes::kCount, "warmup", "--warmup", "iterations before them that are not timed")
        .within(0, 10'000);
inline constexpr Knob kCheckIterations =
    knob_of(Takes::kCount, "check_iterations", "--check",
            "iterations before those in which every gradient is verified")
        .within(0, 10'000);
inline constexpr Knob kTimeout =
    knob_of(Takes::kTime, "timeout_seconds", "--timeout", "longest wait for any one message")
        .within(1e-3, kLongest);
inline constexpr Knob kTrace =
    knob_of(Takes::kText, "", "--trace", "write a Chrome trace a rank into this folder").shown_as("DIR");
inline constexpr Knob kTraceSteps =
    knob_of(Takes::kCount, "", "--trace-steps", "iterations that a trace holds");
inline constexpr Knob kUnpaced =
    knob_of(Takes::kTruth, "", "--unpaced",
            "let the network's queues fill: do not send at the pace that the probe measured");
inline constexpr Knob kChunk =
    knob_of(Takes::kSize, "", "--chunk", "longest transfer of a pipelined road").usually("the road's");
inline constexpr Knob kSmShare = knob_of(Takes::kRatio, "", "--sm-share",
                                         "with --device cuda: measure by how much traffic and layers slow "
                                         "each other that keep this share of a "
                                         "GPU's multiprocessors busy")
                                     .usually("layers as replays have them, which nothing slows")
                                     .shown_as("SHARE");
inline constexpr Knob kProbeChunk =
    knob_of(Takes::kSize, "", "--chunk", "longest transfer of a pipelined road, for which the fits then hold")
        .usually("as the transport likes");
inline constexpr Knob kRunDevice = knob_of(Takes::kName, "device", "--device",
                                           "what gradients lie on and layers run on: cpu, or cuda: a GPU for "
                                           "each rank, by its number on its host")
                                       .usually("what the plan's cluster was probed with, otherwise cpu")
                                       .shown_as("DEVICE");

/// All that a request for a run may say.
inline constexpr Knob kRunRequest[] = {kMethods,   kModel,           kRunStrict, kRunIterations,
                                       kRunWarmup, kCheckIterations, kTimeout,   kRunDevice};

}  // namespace knob

/// Checks the body of a request that a command will carry out. Throws Error{kBadInput} with the path for an
/// unknown key, or a value of another kind or beyond its knob's limits.
void check_request(const JsonPlace& body, std::span<const Knob> knobs);

/// Adds the flags that say what a request said, which check_request() has passed.
void add_flags(const nlohmann::json& request, std::span<const Knob> knobs,
               std::vector<std::string>& arguments);

/// "--first" of "-b,--first"
std::string_view long_flag(const Knob& knob);
/// "-b": the one that errors name
std::string_view short_flag(const Knob& knob);

}  // namespace commtune::api
