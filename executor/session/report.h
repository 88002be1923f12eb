#pragma once
// What a run of a plan found out. File format "commtune/run/1".

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/base/units.h"

namespace commtune {

/// One rank's part. Per timed iteration: how long it took from the start of its backward pass to the next
/// one's, and how much of that the compute side spent waiting for gradients.
struct RankReport {
  int rank = 0;
  std::string host;
  bool worker = true;  ///< false: a dedicated server, which has no iterations
  std::vector<double> iteration_seconds;
  std::vector<double> waited_seconds;
  double cpu_seconds = 0;        ///< of the process, over the timed iterations
  double copying_seconds = 0;    ///< of its communication thread, to and from fusion buffers, over the same
  double delayed_seconds = 0;    ///< its threads could run and had no core, over the same; 0: not told
  double wall_seconds = 0;       ///< of the timed iterations together
  std::uint64_t peak_bytes = 0;  ///< largest resident set
  std::uint64_t gradient_bytes = 0;
  std::uint64_t buffer_bytes = 0;   ///< fusion buffers and receive blocks
  double clock_offset_seconds = 0;  ///< this rank's clock minus rank 0's, estimated at the start
  std::string trace;                ///< file written, or empty
  std::uint64_t sent_bytes = 0;     ///< of gradients, over the timed iterations; a server's are not told
  std::uint64_t overflows = 0;      ///< over the same; EngineCounts::overflows
};

/// A message's way through an iteration as rank 0 saw it: medians over the timed iterations, seconds from the
/// start of the backward pass.
struct MessageReport {
  double queued_seconds = 0;  ///< its last gradient exists
  double started_seconds = 0;
  double reduced_seconds = 0;      ///< its reduce stage ended here
  double distributed_seconds = 0;  ///< summed and back
  double used_seconds = 0;         ///< the forward pass asked for it
};

struct CheckReport {
  int iterations = 0;               ///< in which every element of every tensor was compared
  std::uint64_t tensors = 0;        ///< compared in full, over all ranks
  std::uint64_t spot_elements = 0;  ///< compared in timed iterations, over all ranks
};

struct RunReport {
  std::string method, model;
  std::string plan_digest, profile_digest;
  std::string transport;
  int workers = 0;
  std::uint64_t chunk_bytes = 0;
  std::vector<double> iteration_seconds;  ///< per timed iteration, the slowest worker's
  double median_seconds = 0, p95_seconds = 0;
  double half_width_seconds = 0;  ///< of the median's 95 % interval
  double waited_seconds = 0;      ///< median exposed communication of rank 0
  CheckReport check;
  std::vector<MessageReport> messages;
  std::vector<RankReport> ranks;  ///< on rank 0 all of them, elsewhere this rank alone
  std::string wire{};             ///< what gradients were cast to, "bf16"; empty: they travelled as they are
};

/// Elements of the timed iterations that came back infinite or as no number though every rank's gradient was
/// finite, where at most one rank had others; otherwise no fewer.
std::uint64_t overflows(const RunReport& report);

nlohmann::json to_json(const RunReport& report);
/// Throws Error{kBadInput} naming the first offending value.
RunReport run_report_from_json(const nlohmann::json& json);

/// What a rank hands up to rank 0: a report that has its own part alone.
std::string rank_part_to_text(const RunReport& report);
/// Throws Error{kBadInput} naming the rank ("rank 1 (host n1)") for anything else.
RunReport rank_part_from_text(std::string_view text, std::string_view rank);

}  // namespace commtune
