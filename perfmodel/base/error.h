#pragma once
// Errors that a caller may act on. What is merely absent is a std::optional; a broken invariant is an assert.

#include <stdexcept>
#include <string>

namespace commtune {

enum class ErrorCode {
  kBadInput,  ///< a file, flag or request is malformed: the message names the place, the value and the rule
  kPoorFit,   ///< samples do not support a model that may be used silently
  kNotFound,  ///< a named thing does not exist
  kConflict,  ///< something else holds what is needed, or two parties disagree
  kTimeout,   ///< a deadline passed
  kPeerLost,  ///< a rank, host or link went away
  kStorage,   ///< the database cannot be opened, read or written
  kUnavailable,  ///< a program, device or service that is needed is missing here
  kInterrupted,  ///< the user stopped it
};

/// The one exception type of commtune. The code says what a caller may do about it (mapped to exit statuses
/// and HTTP statuses in one file under api/); the text names the thing, the value and the rule.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace commtune
