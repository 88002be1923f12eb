#pragma once
// What rank 0 says to the program that started it: one JSON object a line. Format "commtune/report/1".

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::api {

/// First: who takes part.
struct Started {
  std::string version;             ///< of the program on the hosts
  std::vector<std::string> hosts;  ///< of each rank
};

/// How far it is, a few times a second.
struct Progressed {
  std::string what;
  double fraction = 0;  ///< 0 to 1
  std::optional<Seconds> left;
};

/// Something to be kept at once: what it is, and the thing ("facts", "sample", "iteration").
struct Found {
  std::string kind;
  nlohmann::json value;
};

/// Last, when it went well.
struct Finished {
  nlohmann::json result;
};

/// Last, when it did not.
struct Failed {
  ErrorCode code = ErrorCode::kUnavailable;
  std::string message;
};

using LaunchReport = std::variant<Started, Progressed, Found, Finished, Failed>;

std::string to_line(const LaunchReport& report);  ///< without the end of line

/// Nothing when the line is no report (a library's own chatter). Throws Error{kBadInput} for a report that is
/// malformed or of a format that this version does not know.
std::optional<LaunchReport> report_from_line(std::string_view line);

}  // namespace commtune::api
