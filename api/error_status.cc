#include "api/error_status.h"

#include <array>

namespace commtune::api {
namespace {

constexpr std::array kAllCodes = {
    ErrorCode::kBadInput, ErrorCode::kPoorFit,     ErrorCode::kNotFound,
    ErrorCode::kConflict, ErrorCode::kTimeout,     ErrorCode::kPeerLost,
    ErrorCode::kStorage,  ErrorCode::kUnavailable, ErrorCode::kInterrupted,
};

}  // namespace

const ErrorStatus& error_status(ErrorCode code) {
  static constexpr ErrorStatus kBadInput{"bad_input", 2, 400, "a flag, file or setting is malformed"};
  static constexpr ErrorStatus kNotFound{"not_found", 3, 404, "a named thing does not exist"};
  static constexpr ErrorStatus kPoorFit{"poor_fit", 4, 422, "the measurements do not support a model"};
  static constexpr ErrorStatus kConflict{"conflict", 5, 409,
                                         "two parties disagree, or something else is busy"};
  static constexpr ErrorStatus kTimeout{"timeout", 6, 504, "a deadline passed"};
  static constexpr ErrorStatus kPeerLost{"peer_lost", 7, 502, "a host, rank or link went away"};
  static constexpr ErrorStatus kStorage{"storage", 8, 507, "the database cannot be opened, read or written"};
  static constexpr ErrorStatus kUnavailable{"unavailable", 9, 503,
                                            "a program or device that is needed is missing"};
  static constexpr ErrorStatus kInterrupted{"interrupted", kExitInterrupted, 499, "the user stopped it"};
  switch (code) {
    case ErrorCode::kBadInput:
      return kBadInput;
    case ErrorCode::kPoorFit:
      return kPoorFit;
    case ErrorCode::kNotFound:
      return kNotFound;
    case ErrorCode::kConflict:
      return kConflict;
    case ErrorCode::kTimeout:
      return kTimeout;
    case ErrorCode::kPeerLost:
      return kPeerLost;
    case ErrorCode::kStorage:
      return kStorage;
    case ErrorCode::kUnavailable:
      return kUnavailable;
    case ErrorCode::kInterrupted:
      return kInterrupted;
  }
  return kUnavailable;
}

ErrorCode error_code_of(std::string_view name) {
  for (const ErrorCode code : kAllCodes)
    if (error_status(code).name == name) return code;
  return ErrorCode::kUnavailable;
}

}  // namespace commtune::api
