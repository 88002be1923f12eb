#pragma once
// Reading the head of an HTTP/1 request (RFC 9112). There is one reading of each head that is taken: where a
// proxy in front could find another request in the same bytes, the head is refused (request smuggling).

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace commtune::api::rest {

struct RequestHead {
  std::string method;                                       ///< as it was sent: "GET"
  std::string target;                                       ///< path and query as they were sent
  std::vector<std::pair<std::string, std::string>> fields;  ///< names in lower case
  std::size_t content_length = 0;                           ///< of the body
  bool coded = false;             ///< a Transfer-Encoding: where its body ends is not read here
  bool expects_continue = false;  ///< the client waits with its body until it is told to go on
  bool closes = false;            ///< the client wants no more of the connection

  /// The value of a field, "" when it is absent.
  ///
  /// name  in any case
  std::string_view field(std::string_view name) const;
};

/// False once nothing can follow that makes it the begin of a head that is taken: a line that does not end
/// with CR LF, or a NUL.
///
/// before  the character before the text; '\0' at the begin
bool may_begin_head(std::string_view text, char before);

/// text    with the empty line at its end
/// throws  Error{kBadInput} saying what is wrong: line ends other than CR LF, folded lines, blanks before a
///         colon, characters that do not belong there, a length that is no number, came twice or stands
///         beside Transfer-Encoding, and a field twice that means one thing
RequestHead read_request_head(std::string_view text);

}  // namespace commtune::api::rest
