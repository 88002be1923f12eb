#pragma once
// Errors as HTTP answers: RFC 9457 problem details.

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "api/rest/http/message.h"
#include "perfmodel/base/error.h"

namespace commtune::api::rest {

/// What has no ErrorCode: said by HTTP alone (401, 404 of a route, 429, ...).
struct HttpError {
  int status = 400;
  std::string code;    ///< "too_many_requests"
  std::string detail;  ///< what is wrong and how to mend it
};

/// One on its way from where it is found to who answers: where only HTTP has a word for what is wrong.
class HttpRefusal : public std::runtime_error {
 public:
  explicit HttpRefusal(HttpError error) : std::runtime_error(error.detail), error_(std::move(error)) {}
  const HttpError& error() const noexcept { return error_; }

 private:
  HttpError error_;
};

Reply problem(const HttpError& error, std::string_view request_id);

/// An Error of ours. The path that a JSON reader's message starts with becomes the pointer, a parameter's
/// name becomes "parameter".
Reply problem(const Error& error, std::string_view request_id);

/// "layers[12].tensors[0].bytes: expected ..." -> "/layers/12/tensors/0/bytes"; "" when the message starts
/// otherwise.
std::string pointer_of(std::string_view message);

}  // namespace commtune::api::rest
