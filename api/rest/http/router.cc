#include "api/rest/http/router.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace commtune::api::rest {
namespace {

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> segments;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at + 1), path.size());
    segments.emplace_back(path.substr(at + 1, end - at - 1));
    at = end;
  }
  return segments;
}

bool is_argument(const std::string& segment) { return segment.starts_with('{'); }

/// The arguments when the path fits the pattern.
std::optional<std::vector<std::string>> fit(const std::vector<std::string>& pattern,
                                            const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return {};
  for (std::size_t i = 0; i < path.size(); ++i)
    if (!is_argument(pattern[i]) && pattern[i] != path[i]) return {};
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (!is_argument(pattern[i])) continue;
    auto decoded = percent_decoded(path[i], false);
    if (!decoded || decoded->empty()) return {};
    arguments.push_back(std::move(*decoded));
  }
  return arguments;
}

}  // namespace

void Router::add(Route route) {
  segments_.push_back(split(route.pattern));
  routes_.push_back(std::move(route));
}

std::optional<Router::Match> Router::find(std::string_view method, std::string_view path) const {
  const std::vector<std::string> segments = split(path);
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i].method != method) continue;
    if (auto arguments = fit(segments_[i], segments)) return Match{&routes_[i], i, std::move(*arguments)};
  }
  return {};
}

std::string Router::methods_of(std::string_view path) const {
  const std::vector<std::string> segments = split(path);
  std::string methods;
  for (std::size_t i = 0; i < routes_.size(); ++i)
    if (fit(segments_[i], segments)) methods += (methods.empty() ? "" : ", ") + routes_[i].method;
  return methods;
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\0') return {};
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      unsigned value = 0;
      if (i + 2 >= text.size()) return {};
      const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
      if (error != std::errc{} || end != text.data() + i + 3 || value == 0) return {};
      out += static_cast<char>(value);
      i += 2;
    }
  }
  return out;
}

std::optional<std::map<std::string, std::string>> parse_query(std::string_view query) {
  std::map<std::string, std::string> out;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    auto name = percent_decoded(pair.substr(0, equals), true);
    auto value = equals == std::string_view::npos ? std::optional<std::string>{""}
                                                  : percent_decoded(pair.substr(equals + 1), true);
    if (!name || !value || !out.emplace(std::move(*name), std::move(*value)).second) return {};
  }
  return out;
}

}  // namespace commtune::api::rest
