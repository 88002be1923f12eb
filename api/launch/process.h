#pragma once
// A child process with its three streams, started from an argument vector: no shell is ever involved.

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/launch/cancellation.h"

namespace commtune::api {

/// What the parent hears while the child runs. Called from the thread that waits for it; a callback that
/// throws ends the child, and the exception leaves the call that waits.
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

/// A child that runs beside its parent, which hears of it and is heard by it only while it waits. Runs in a
/// process group of its own, so that Ctrl-C reaches only us and we decide what happens; it gets SIGTERM
/// should the thread die that made it. One thread.
class Process {
 public:
  /// hooks, cancellation  outlive this
  /// throws  Error{kUnavailable} naming the program when it cannot be started
  Process(ProcessOptions options, const ProcessHooks& hooks, Cancellation& cancellation);
  /// Ends a child that still runs, step by step as the options say.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// More for its standard input, which is handed over while the parent waits. Only where the options do not
  /// end that; a child that reads no more loses it.
  void write(std::string_view text);

  /// Comes back when `enough`, which is asked after each wake-up, says so or the child has ended and all that
  /// it wrote was handed to the hooks.
  ///
  /// returns  nothing: it runs on; or its end. Cancelled or past its deadline it is ended meanwhile, as
  ///          run_process() says
  std::optional<ProcessEnd> wait(const std::function<bool()>& enough);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A Process from its start to its end.
///
/// Cancelled or past its deadline it is ended step by step as the options say; each further request to cancel
/// goes on to the next step at once. Throws Error{kUnavailable} naming the program when it cannot be started.
ProcessEnd run_process(const ProcessOptions& options, const ProcessHooks& hooks, Cancellation& cancellation);

}  // namespace commtune::api
