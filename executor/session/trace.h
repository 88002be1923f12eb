#pragma once
// A rank's trace as Chrome trace events, which Perfetto opens: object form with `traceEvents`, complete
// events (`ph` "X") with `ts` and `dur` in microseconds, a process per rank named with its host. Times are on
// rank 0's clock and count from the moment given, so that the files of several ranks can be put together.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/base/new_file.h"
#include "executor/engine/engine.h"
#include "executor/session/layer_times.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"
#include "perfmodel/simulate/simulate.h"

namespace commtune {

struct TraceOptions {
  std::string path;
  int rank = 0;
  std::string name;                 ///< of the process: "rank 0 on h1"
  Clock::time_point zero;           ///< on rank 0's clock: `ts` 0
  double clock_offset_seconds = 0;  ///< this rank's clock minus rank 0's
};

/// Writes one iteration after the other. The file is valid JSON after each, whatever becomes of the process.
class TraceWriter {
 public:
  /// Replaces what is there. Throws as NewFile does.
  TraceWriter(const TraceOptions& options, const Plan& plan, const Profile& profile);

  /// Compute: what the layers did and waited. Reduce and distribute: each message on a lane of its own among
  /// those under way at the same time, with when it was queued and used.
  void write(int iteration, std::span<const LayerTimes> layers, std::span<const MessageTimes> messages);
  /// A server's part: what it summed, as far as it lies between the first and the last moment written so far.
  void write_served(std::span<const Served> served);
  const std::string& path() const { return options_.path; }

 private:
  double microseconds(Clock::time_point at) const;
  void event(std::string_view name, int lane, Clock::time_point from, Clock::time_point until,
             const std::string& arguments);
  void name_lane(int lane, const std::string& name);
  void flush();

  const TraceOptions options_;
  std::vector<std::string> layer_names_, message_names_;  // messages, then pulls
  std::vector<std::size_t> message_bytes_;
  std::size_t pushed_ = 0;   // messages; behind them are pulls
  std::vector<bool> named_;  // lanes
  std::string batch_;
  Clock::time_point first_ = Clock::time_point::max(), last_ = Clock::time_point::min();
  NewFile file_;
};

/// The predicted iteration in the same shape, as a process named "predicted", to open beside the measured
/// ones. begins: where on their time line it starts. Throws as NewFile does.
void write_predicted_trace(const std::string& path, const Plan& plan, const Profile& profile,
                           const Timeline& timeline, Seconds begins);

/// One trace out of several files' texts: every rank's, and a predicted one if wanted.
/// throws Error{kBadInput} for a text that is no trace.
std::string merge_traces(std::span<const std::string> texts);

}  // namespace commtune
