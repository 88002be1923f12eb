#include "api/rest/http/problem.h"

#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "api/error_status.h"

namespace commtune::api::rest {
namespace {

std::string_view title_of(int status, std::string_view code) {
  switch (status) {
    case 400:
      return "Malformed request";
    case 401:
      return "Not authenticated";
    case 403:
      return "Not allowed";
    case 404:
      return "Not found";
    case 405:
      return "Method not allowed";
    case 408:
      return "Request took too long";
    case 409:
      return "Conflict";
    case 411:
      return "Length required";
    case 413:
      return "Body too large";
    case 414:
      return "Path too long";
    case 415:
      return "Unsupported media type";
    case 422:
      return code == "key_reused" ? "Key of another request" : "Measurements do not support an answer";
    case 429:
      return code == "quota_exceeded" ? "Quota used up" : "Too many requests";
    case 431:
      return "Header too large";
    case 500:
      return "Internal error";
    case 502:
      return "A host is gone";
    case 503:
      return "Unavailable";
    case 504:
      return "Deadline passed";
    case 507:
      return "Database failure";
    default:
      return "Error";
  }
}

bool is_path_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '[' || c == ']' ||
         c == '-';
}

constexpr std::string_view kParameter = "parameter ";

Reply render(int status, std::string_view code, std::string_view detail, std::string_view request_id) {
  nlohmann::json document{{"type", fmt::format("/problems/{}", code)},
                          {"title", title_of(status, code)},
                          {"status", status},
                          {"detail", detail},
                          {"code", code},
                          {"request_id", request_id}};
  if (detail.starts_with(kParameter)) {
    const std::string_view rest = detail.substr(kParameter.size());
    document["parameter"] = rest.substr(0, rest.find(' '));
  } else if (status == 400) {
    if (const std::string pointer = pointer_of(detail); !pointer.empty()) document["pointer"] = pointer;
  }
  Reply reply = json_reply(document, status);
  reply.type = "application/problem+json";
  return reply;
}

}  // namespace

std::string pointer_of(std::string_view message) {
  const std::size_t end = message.find(": ");
  if (end == std::string_view::npos || end == 0) return {};
  std::string pointer = "/";
  for (const char c : message.substr(0, end)) {
    if (!is_path_character(c)) return {};
    if (c == ']') continue;
    pointer += c == '.' || c == '[' ? '/' : c;
  }
  return pointer == "/document" ? std::string{} : pointer;
}

Reply problem(const HttpError& error, std::string_view request_id) {
  return render(error.status, error.code, error.detail, request_id);
}

Reply problem(const Error& error, std::string_view request_id) {
  const ErrorStatus& status = error_status(error.code());
  // 499 is nginx's word for a client that went away; here the work was ended, so that it may be asked again.
  // 504 is a proxy's, for another server's silence; here it is the service itself that had not enough time.
  const bool again = error.code() == ErrorCode::kInterrupted || error.code() == ErrorCode::kTimeout;
  const int http = again ? 503 : status.http_status;
  return render(http, status.name, error.what(), request_id);
}

}  // namespace commtune::api::rest
