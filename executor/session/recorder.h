#pragma once
// What a rank measures while its session runs iterations under one plan, in one turn or several, and what all
// ranks' parts come to.

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/session/exchange.h"
#include "executor/session/layer_times.h"
#include "executor/session/process_usage.h"
#include "executor/session/report.h"
#include "executor/session/session.h"
#include "executor/session/trace.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune {

struct RecorderOptions {
  std::string trace_directory;  ///< a Chrome trace per rank (rank0.json, ...) is written here, and on rank 0
                                ///< all of them in one (all_ranks.json); empty: none
  int trace_steps = 3;          ///< timed iterations that the trace holds (the first ones)
};

class Recorder {
 public:
  /// peers, plan, profile  outlive this
  Recorder(const Peers& peers, const Plan& plan, const Profile& profile, const ClockSurvey& clocks,
           RecorderOptions options);

  /// What this process uses from here to end_turn() counts: a worker's timed iterations, a server's whole
  /// turn.
  ///
  /// counts  of the engine so far
  void begin_turn(const EngineCounts& counts);
  /// A timed iteration.
  void add(const IterationTimes& times, std::span<const LayerTimes> layers,
           std::span<const MessageTimes> messages, std::span<const MessageTimes> pulls);
  void end_turn(const EngineCounts& counts);
  /// What the session said when the turn's plan was ended.
  void add(const PlanEnd& end);

  /// Collective, while no plan is in force: writes the merged trace on rank 0 and puts the report together.
  ///
  /// checked  by this rank
  /// returns  on rank 0 the whole report, elsewhere this rank's part
  RunReport report(Session& session, const CheckReport& checked, std::uint64_t gradient_bytes, Bytes chunk,
                   Deadline until);

 private:
  void write_traced();
  std::filesystem::path trace_file(const std::string& name) const;
  void merge_traces_of_ranks(Communicator& communicator, Deadline until);
  RunReport report_of(std::vector<RankReport> ranks, const CheckReport& checked);
  std::vector<MessageReport> message_medians();

  const Plan& plan_;
  const Profile& profile_;
  const RecorderOptions options_;
  const ClockSurvey clocks_;
  RankReport own_;
  std::vector<std::array<std::vector<double>, 5>>
      moments_;  // by message: its MessageReport in each iteration
  std::optional<TraceWriter> trace_;
  std::vector<std::pair<std::vector<LayerTimes>, std::vector<MessageTimes>>> traced_;  // not written yet
  int written_ = 0;  // iterations in the trace
  bool server_traced_ = false;
  // Of the turn:
  ProcessUsage before_;
  Clock::time_point began_;
  EngineCounts counts_before_;
};

}  // namespace commtune
