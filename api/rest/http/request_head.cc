#include "api/rest/http/request_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

/// Fields of which two would be two meanings.
constexpr std::array<std::string_view, 9> kOnce = {"host",          "content-length",   "transfer-encoding",
                                                   "content-type",  "content-encoding", "origin",
                                                   "authorization", "idempotency-key",  "expect"};

[[noreturn]] void fail(std::string_view why) { throw Error(ErrorCode::kBadInput, std::string(why)); }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return lower(c); });
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || kOthers.find(c) != std::string_view::npos;
  });
}

bool is_visible(char c) { return c > ' ' && c < '\x7f'; }

/// Text of a field: no control character but the tab. Bytes beyond ASCII are taken as they are.
bool is_field_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= ' ' && byte != 0x7f);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// Without its end; what follows stays in `text`.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || end == 0 || text[end - 1] != '\r') fail("a line ends with CR LF");
  const std::string_view line = text.substr(0, end - 1);
  if (line.find('\r') != std::string_view::npos) fail("a CR stands only before an LF");
  text.remove_prefix(end + 1);
  return line;
}

/// True for HTTP/1.1.
bool read_request_line(std::string_view line, RequestHead& head) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == last) fail("the first line is: method, path, HTTP/1.1");
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(head.method)) fail("the method is no word");
  if (head.target.empty() || !std::all_of(head.target.begin(), head.target.end(), is_visible))
    fail("the path has characters that must be escaped (%20)");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") fail("the version must be HTTP/1.1 or HTTP/1.0");
  return version == "HTTP/1.1";
}

std::pair<std::string, std::string> read_field(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') fail("a header must not be folded over several lines");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) fail("a header has no colon");
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) fail("a header's name is a word, with the colon right after it");
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), is_field_text))
    fail(fmt::format("{}: has a control character", name));
  return {lower(name), std::string(value)};
}

std::size_t times(const RequestHead& head, std::string_view name) {
  return static_cast<std::size_t>(std::count_if(head.fields.begin(), head.fields.end(),
                                                [&](const auto& field) { return field.first == name; }));
}

std::size_t read_length(std::string_view text) {
  std::size_t length = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (!digits || error != std::errc{}) fail("Content-Length: must be one whole number");
  return length;
}

/// True when a field of this name has the word among its comma-separated ones.
bool has_word(const RequestHead& head, std::string_view name, std::string_view word) {
  for (const auto& [each, value] : head.fields) {
    if (each != name) continue;
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      if (lower(trimmed(one)) == word) return true;
    }
  }
  return false;
}

void note_framing(RequestHead& head, bool newest) {
  for (const std::string_view name : kOnce)
    if (times(head, name) > 1) fail(fmt::format("{}: came twice", name));
  const bool has_length = times(head, "content-length") > 0;
  head.coded = times(head, "transfer-encoding") > 0;
  if (head.coded && has_length)
    fail("Content-Length and Transfer-Encoding: only one of them says where a body ends");
  if (head.coded && !newest) fail("Transfer-Encoding: there is none in HTTP/1.0");
  if (newest && times(head, "host") == 0) fail("Host: is missing");
  if (has_length) head.content_length = read_length(head.field("content-length"));
  head.expects_continue = newest && lower(head.field("expect")) == "100-continue";
  head.closes =
      has_word(head, "connection", "close") || (!newest && !has_word(head, "connection", "keep-alive"));
}

}  // namespace

std::string_view RequestHead::field(std::string_view name) const {
  const std::string wanted = lower(name);
  for (const auto& [each, value] : fields)
    if (each == wanted) return value;
  return {};
}

bool may_begin_head(std::string_view text, char before) {
  for (const char c : text) {
    if (c == '\0' || (c == '\n' && before != '\r')) return false;
    before = c;
  }
  return true;
}

RequestHead read_request_head(std::string_view text) {
  RequestHead head;
  const bool newest = read_request_line(take_line(text), head);
  for (std::string_view line = take_line(text); !line.empty(); line = take_line(text))
    head.fields.push_back(read_field(line));
  if (!text.empty()) fail("the head ends with an empty line");
  note_framing(head, newest);
  return head;
}

}  // namespace commtune::api::rest
