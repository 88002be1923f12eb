#pragma once
// Ranks that never come together must not stay: while Open MPI starts there is no deadline on anything, and
// where a rank has died together with what launched it nobody is left to end the others.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string_view>

#include "api/error_status.h"

namespace commtune::api {

/// While it lives the process has so long (whole seconds); then it says so on standard error and ends with
/// the exit status of a lost peer. One at a time: it takes SIGALRM.
class StartLimit {
 public:
  explicit StartLimit(std::chrono::seconds limit) {
    std::signal(SIGALRM, &StartLimit::end_process);
    alarm(static_cast<unsigned>(limit.count()));
  }
  ~StartLimit() {
    alarm(0);
    std::signal(SIGALRM, SIG_DFL);
  }
  StartLimit(const StartLimit&) = delete;
  StartLimit& operator=(const StartLimit&) = delete;

 private:
  static void end_process(int /*signal*/) {
    static constexpr std::string_view kText =
        "tune-rank: the ranks did not come together in time: one may have died, or a host cannot be "
        "reached\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kText.data(), kText.size());
    _exit(error_status(ErrorCode::kPeerLost).exit_status);
  }
};

}  // namespace commtune::api
