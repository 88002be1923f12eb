#pragma once
// A child process with its three streams, started from an argument vector: no shell is ever involved.

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/launch/cancellation.h"

namespace commtune::api {

/// What the parent hears while the child runs. Called from the thread that called run_process; a callback
/// that throws ends the child, and the exception leaves run_process.
struct ProcessHooks {
  std::function<void(std::string_view line)> on_output;  ///< a line of its standard output, without the end
  std::function<void(std::string_view line)> on_error;   ///< a line of its standard error
  /// Asked after each wake-up: the moment at which the child is ended for taking too long, if there is one.
  std::function<std::optional<std::chrono::steady_clock::time_point>()> deadline;
};

struct ProcessEnd {
  int status = 0;          ///< exit status; meaningless when signal is not 0
  int signal = 0;          ///< the signal that ended it; 0 when it exited by itself
  bool timed_out = false;  ///< ended by us, past its deadline
  bool cancelled = false;  ///< ended by us, since somebody asked
};

/// One way to ask a child to end, and how long to wait before the next one.
struct EndingStep {
  int signal = SIGTERM;
  std::chrono::milliseconds grace{10'000};
};

struct ProcessOptions {
  std::vector<std::string> argv;                 ///< argv[0] is looked up in PATH unless it has a slash
  std::string input;                             ///< handed to its standard input
  bool ends_input = true;                        ///< after that; or else only when the child has ended
  std::vector<EndingStep> ending{EndingStep{}};  ///< tried in turn; SIGKILL for its whole group comes last
};

/// Runs the child in a process group of its own, so that Ctrl-C reaches only us and we decide what happens;
/// it gets SIGTERM should the calling thread die. Returns after it has ended and all that it wrote was
/// handed to the hooks.
///
/// Cancelled or past its deadline it is ended step by step as the options say; each further request to cancel
/// goes on to the next step at once. Throws Error{kUnavailable} naming the program when it cannot be started.
ProcessEnd run_process(const ProcessOptions& options, const ProcessHooks& hooks, Cancellation& cancellation);

}  // namespace commtune::api
