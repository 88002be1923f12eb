#pragma once
// From what mpirun and the ranks wrote before a job ended without a result, to one message that says which
// host, what happened and what to do.

#include <deque>
#include <string>
#include <string_view>

#include "api/launch/hosts.h"
#include "api/launch/process.h"
#include "perfmodel/base/error.h"

namespace commtune::api {

/// The last lines of a job's standard error; earlier ones are let go.
class Transcript {
 public:
  void add(std::string_view line);
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::deque<std::string> lines_;
};

struct FailedLaunch {
  const Transcript& transcript;
  const HostList& hosts;
  ProcessEnd end;
  std::string program;   ///< what was started: "mpirun"
  bool started = false;  ///< the ranks had reported before it ended
};

/// The error to be thrown for it: kPeerLost naming host or rank, kUnavailable for a program that is missing,
/// kTimeout, kBadInput for slots; what matches nothing is told in mpirun's own words.
Error diagnose(const FailedLaunch& failed);

}  // namespace commtune::api
