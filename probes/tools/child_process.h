#pragma once
// A program started and waited for, with a deadline.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "executor/transport/transport.h"

namespace commtune::probes {

/// Killed and reaped when it goes out of scope, if it still runs.
class ChildProcess {
 public:
  /// Standard output goes to this object, standard input and error to nowhere.
  /// arguments  program (looked up in PATH) and its arguments
  /// throws     Error{kUnavailable} when it cannot be started
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// What it wrote until it ended; nullopt at the deadline.
  std::optional<std::string> wait(Deadline until);

 private:
  pid_t process_ = -1;
  int output_ = -1;
};

}  // namespace commtune::probes
