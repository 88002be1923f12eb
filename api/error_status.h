#pragma once
// What an error means outside the process: its name in JSON, the exit status of `tune`, the status of an HTTP
// answer. The one place that knows all codes.

#include <string_view>

#include "perfmodel/base/error.h"

namespace commtune::api {

struct ErrorStatus {
  std::string_view name;     ///< in JSON: "bad_input"
  int exit_status = 1;       ///< of `tune`
  int http_status = 500;     ///< of the service
  std::string_view meaning;  ///< one line for `tune --help` and the manual
};

/// Exit status of an error that is not an Error of ours: a defect.
inline constexpr int kExitDefect = 1;

/// What the shell shows for a program that Ctrl-C ended: 128 + SIGINT.
inline constexpr int kExitInterrupted = 130;

const ErrorStatus& error_status(ErrorCode code);

/// The code with this name; kUnavailable for a name that this version does not know.
ErrorCode error_code_of(std::string_view name);

}  // namespace commtune::api
