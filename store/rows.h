#pragma once
// What the store keeps, as plain values. NewX is what a caller hands in; XRow is what was stored, with its
// id, its moment and the version of commtune that wrote it. XSummary leaves out the large parts, for lists.
// Every member of a NewX has a default, so that a caller may name those that it sets: {.plan = id}.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/cluster.h"
#include "perfmodel/fit/curve.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "store/timestamp.h"

namespace commtune {

/// Identity of a row within its table, from 1, growing in the order of storing and never used again.
using RowId = std::int64_t;

/// With which token of the service a row was handed in: a row of the tokens, kNoToken or kStartToken.
using TokenId = std::int64_t;
inline constexpr TokenId kNoToken = 0;
inline constexpr TokenId kStartToken = -1;  ///< that of a start of the service, which is kept nowhere

/// How a piece of work (a probe session, a run) stands. It is running until it ends in one of the others.
enum class WorkState {
  kRunning,
  kComplete,
  kInterrupted,  ///< a person stopped it, or its process is gone
  kFailed,       ///< the row's error says why
};

std::string to_string(WorkState state);  ///< "running", "complete", "interrupted", "failed"

/// Where a row came from.
struct Origin {
  Timestamp created{};
  std::string version;  ///< OpenOptions::version of the program that wrote it
};

/// What the answers about the current cluster of a name rest on: as long as two are equal, its row would say
/// the same of hosts and facts, and its current fit is the same.
struct ClusterState {
  RowId cluster = 0;
  std::optional<RowId> fit;               ///< the current one
  std::string newest_facts;               ///< ClusterRow::newest_facts, as they are written in the file
  std::vector<ClusterState> others = {};  ///< of the latest seen over each other transport

  bool operator==(const ClusterState&) const = default;
};

/// A cluster as it was found at one time. The same name with another fingerprint, transport or host list is
/// another row: what was measured belongs to the machines that it was measured on.
struct ClusterRow {
  RowId id = 0;
  std::string name;
  std::string transport;
  std::string fingerprint;
  std::map<std::string, std::string> facts;         ///< what the fingerprint was made of, and releases
  std::map<std::string, std::string> newest_facts;  ///< as seen last, by a probe or by a run
  std::vector<Host> hosts;
  Timestamp seen{};  ///< when it was last found like this; of rows with one name, the latest seen is current
  Origin origin;
};

/// One call of the probes.
struct NewSession {  // NOLINT(bugprone-exception-escape): moving a nlohmann::json does not throw
  RowId cluster = 0;
  nlohmann::json settings{};  ///< sizes, repetitions, interval, ... as the probes understand them
  Seconds budget{};           ///< 0: none was set
  bool resumable = true;      ///< a later session may go on from its samples
  std::string owner{};        ///< who runs it, in the caller's words ("host1 pid 4711"), for messages
};

struct SessionRow : NewSession {
  RowId id = 0;
  WorkState state = WorkState::kRunning;
  std::string error;               ///< why it failed; empty otherwise
  std::optional<Timestamp> ended;  ///< absent while running
  int resumed = 0;                 ///< how often it was taken up again
  std::int64_t samples = 0;        ///< stored so far
  Origin origin;                   ///< created is when it started
};

/// One measured setting: a size on a link, a road, or in memory.
struct NewSample {     // NOLINT(bugprone-exception-escape): as above
  std::string kind{};  ///< the probe's word for what was timed: "link", "operation", "reduction", "copy", ...
  std::optional<Operation> operation{};
  std::optional<Road> road{};
  int workers = 0;  ///< 0 where it makes no sense
  int servers = 0;
  std::optional<int> source_rank{}, destination_rank{};
  int in_flight = 1;        ///< messages under way at once
  nlohmann::json detail{};  ///< whatever else tells this setting apart ("duplex", a sub-group); null for none
  Bytes bytes{};
  Seconds median{};
  Seconds half_width{};  ///< of the median's 95 % interval; 0 when unknown
  int repetitions = 1;
  std::vector<double> raw_seconds{};  ///< every repetition, in the order measured; may be empty
};

struct SampleRow : NewSample {
  RowId id = 0;
  RowId session = 0;
  Timestamp at{};
};

/// What was made of a session's samples: a whole cluster, replacing the one before it for predictions.
struct NewFit {
  RowId session = 0;
  Cluster cluster{};
  nlohmann::json settings{};  ///< FitOptions and the like
};

struct FitSummary {
  RowId id = 0;
  RowId session = 0;
  RowId cluster = 0;  ///< the session's cluster
  std::string cluster_name;
  std::optional<RowId> supersedes;     ///< the fit that was current for this cluster row until now
  std::optional<RowId> superseded_by;  ///< absent: this one is current
  /// When the session's first fit was made: how old its samples are, whatever plans told of its costs later.
  Timestamp probed{};
  Origin origin;
};

struct FitRow : FitSummary {
  Cluster snapshot;
  nlohmann::json settings;
};

/// One curve of a fit with how well it explains its samples, for lists and for watching drift.
struct FitCurveRow {
  RowId id = 0;
  RowId fit = 0;
  RowId session = 0;
  std::string subject;  ///< "link intra-host", "link inter-host", "all-reduce", "push-pull", ...
  std::string setting;  ///< "alone", "streamed", "duplex"
  std::optional<Road> road;
  int workers = 0;
  int pieces = 0;
  FitQuality quality;
  Bytes smallest, largest;
};

struct ProfileSummary {
  RowId id = 0;
  std::string digest;
  std::string layout;  ///< layout_digest(); empty when an earlier version stored what cannot be read now
  std::string model;
  int batch = 1;
  int layers = 0;
  int tensors = 0;
  Bytes gradient_bytes;
  Seconds compute{};  ///< forward + backward + update
  std::string how;    ///< ProfileOrigin::how
  Origin origin;
};

struct ProfileRow : ProfileSummary {
  Profile profile;
};

/// The outcome of tuning one job.
struct NewPlan {  // NOLINT(bugprone-exception-escape): moving a nlohmann::json does not throw
  Plan plan{};
  RowId profile = 0;
  std::optional<RowId> fit{};  ///< absent when the cluster came from a file
  nlohmann::json ranking{};    ///< what was compared, as the tuner reports it
  Seconds predicted{};
  Seconds half_width{};  ///< of the prediction's 95 % interval; 0 when unknown
  Seconds bound{};       ///< of the plan's road, under the costs it was predicted with; 0 when not computed
  std::optional<TokenId> token{};  ///< absent: it came from no client of the service
};

/// What it takes a while to make of a NewPlan: made ahead, no other writer waits for it.
struct PlanTexts {
  std::string digest;
  std::string plan;                    ///< its JSON
  std::optional<std::string> ranking;  ///< the JSON of what was compared
};

struct PlanSummary {
  RowId id = 0;
  std::string digest;
  std::string layout;  ///< its profile's, also where the plan itself is from before there were any
  std::string method;
  std::string model;
  std::string road;  ///< describe_road(plan)
  int workers = 1;
  int messages = 0;
  RowId profile = 0;
  std::optional<RowId> fit;
  std::optional<RowId> cluster;  ///< the fit's
  std::string cluster_name;      ///< empty without a fit
  Seconds predicted{}, half_width{}, bound{};
  Origin origin;
};

/// A plan's row without the plan.
struct PlanRanking : PlanSummary {
  nlohmann::json ranking;
};

struct PlanRow : PlanSummary {
  Plan plan;
  nlohmann::json ranking;
};

/// An execution of a plan, at its start.
struct NewRun {  // NOLINT(bugprone-exception-escape): as above
  RowId plan = 0;
  std::optional<RowId> cluster{};                 ///< where it runs, when that is a known cluster
  std::vector<Host> hosts{};                      ///< where its ranks really are, in rank order
  std::map<std::string, std::string> versions{};  ///< of libraries and kernel
  nlohmann::json settings{};                      ///< iterations, warm-up, transport, ...
  std::string owner{};  ///< this_process() of who carries it out; empty: nobody to be looked for
  /// False: anybody on the machine could have handed it in. It is kept and shown, and no prediction is judged
  /// by it.
  bool attested = true;
  std::optional<TokenId> token{};  ///< as NewPlan::token
};

/// How it ended, with what was measured until then.
struct RunResult {                          // NOLINT(bugprone-exception-escape): as above
  WorkState state = WorkState::kComplete;   ///< anything but kRunning
  std::vector<double> iteration_seconds{};  ///< in order, warm-up left out
  Seconds median{}, low{}, high{};          ///< the median's 95 % interval; 0 when nothing was measured
  std::string error{};
  std::string trace_path{};  ///< empty: none was written
  /// Facts of the hosts that were not so when the fit behind the prediction was made.
  std::vector<std::string> differences{};
  /// Per message of the plan, as in "commtune/run/1": medians in seconds from the start of the backward pass;
  /// null when nothing was measured.
  nlohmann::json messages{};
};

struct RunSummary {
  RowId id = 0;
  RowId plan = 0;
  std::optional<RowId> cluster;
  std::string cluster_name;  ///< empty without a cluster
  std::string method;        ///< the plan's
  std::string model;         ///< the plan's
  int workers = 1;           ///< the plan's
  WorkState state = WorkState::kRunning;
  bool attested = true;  ///< NewRun::attested
  std::string workload;  ///< what ran: "replay" or "training"; empty: nobody said
  int iterations = 0;
  Seconds predicted{};  ///< the plan's, to be read beside the median
  Seconds median{}, low{}, high{};
  std::string error;
  std::string trace_path;
  std::vector<std::string> differences;  ///< RunResult::differences
  std::optional<Timestamp> ended;
  Origin origin;
};

struct RunRow : RunSummary {
  std::vector<double> iteration_seconds;
  std::vector<Host> hosts;
  std::map<std::string, std::string> versions;
  nlohmann::json settings;
  nlohmann::json messages;  ///< RunResult::messages
};

/// A window of a list. Lists run from the newest to the oldest row, samples and fit curves from the oldest
/// on.
struct Page {
  int limit = 50;   ///< 1..1000
  RowId after = 0;  ///< the last id of the page before; 0: from the start
};

template <class Row>
struct PageOf {
  std::vector<Row> rows;
  std::optional<RowId> next;  ///< Page::after of the next page; absent: this was the last
};

}  // namespace commtune
