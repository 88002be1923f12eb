#pragma once
// A rank's trace as Chrome trace events, which Perfetto opens: object form with `traceEvents`, complete
// events
// (`ph` "X") with `ts` and `dur` in microseconds, a process per rank named with its host. Times are on rank
// 0's clock, from the moment given, so that the files of several ranks can be laid together.

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/engine.h"
#include "executor/replay.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune {

struct TraceOptions {
  std::string path;
  int rank = 0;
  std::string host;
  Clock::time_point zero;           ///< on this rank's clock: `ts` 0
  double clock_offset_seconds = 0;  ///< this rank's clock minus rank 0's
};

/// Writes one iteration after the other. The file is valid JSON after each, whatever becomes of the process.
class TraceWriter {
 public:
  /// throws Error{kStorage} when the file cannot be written.
  TraceWriter(const TraceOptions& options, const Plan& plan, const Profile& profile);

  /// Compute: what the layers did and waited. Reduce and distribute: each message on a lane of its own among
  /// those under way at the same time, with when it was queued and used.
  void write(int iteration, std::span<const LayerTimes> layers, std::span<const MessageTimes> messages);
  const std::string& path() const { return options_.path; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  double microseconds(Clock::time_point at) const;
  void event(std::string_view name, int lane, Clock::time_point from, Clock::time_point until,
             const std::string& arguments);
  void name_lane(int lane, const std::string& name);
  void flush();

  const TraceOptions options_;
  std::vector<std::string> layer_names_, message_names_;
  std::vector<std::size_t> message_bytes_;
  std::vector<bool> named_;  // lanes
  std::string batch_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}  // namespace commtune
