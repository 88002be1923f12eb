#pragma once
// Path and query parameters that several routes have.

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/rest/http/message.h"
#include "api/view/page_json.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/fields.h"
#include "store/store.h"

namespace commtune::api::rest {

/// Fields of a query, each a parameter of its own: visit_fields() and visit_knob() read what is there.
class QueryReader {
 public:
  explicit QueryReader(const Request& request) : request_(request) {}
  template <typename T>
  void operator()(const fields::Field& field, T& value, const fields::Real& rule) {
    value = request_.number(std::string(field.name), rule.least, rule.most, value);
  }
  template <typename T>
  void operator()(const fields::Field& field, T& value, const fields::Whole& rule) {
    value =
        static_cast<T>(request_.integer(std::string(field.name), static_cast<long long>(rule.least),
                                        static_cast<long long>(rule.most), static_cast<long long>(value)));
  }
  void operator()(const fields::Field& field, bool& value, const fields::Boolean& /*rule*/) {
    const std::string_view text = request_.parameter(std::string(field.name));
    if (!text.empty() && text != "true" && text != "false")
      throw Error(ErrorCode::kBadInput, fmt::format("parameter {} = \"{}\": expected true or false",
                                                    field.name, text.substr(0, 64)));
    if (!text.empty()) value = text == "true";
  }
  void operator()(const fields::Field& field, std::string& value, const fields::Text& /*rule*/) {
    value = request_.parameter(std::string(field.name));
  }
  template <typename T, typename Rule>
  void when_set(const fields::Field& field, T& value, const Rule& rule, const T& /*usual*/ = {}) {
    (*this)(field, value, rule);
  }

 private:
  const Request& request_;
};

/// ?limit= and ?after=
inline Page page_of(const Request& request) {
  Page page;
  page.limit = static_cast<int>(request.integer("limit", 1, 1000, page.limit));
  page.after = request.integer("after", 0, (1LL << 53) - 1, 0);
  return page;
}

/// A row's id in the path. Throws Error{kNotFound} for what cannot be one.
inline RowId row_id_of(const Request& request, std::string_view what) {
  const std::string& text = request.arguments.at(0);
  RowId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size() || id < 1)
    throw Error(ErrorCode::kNotFound,
                fmt::format("{} \"{}\": an id is a whole number from 1", what, text.substr(0, 64)));
  return id;
}

/// Throws Error{kNotFound} naming what is absent.
template <class Row>
Row present(std::optional<Row> row, std::string_view what, const std::string& id) {
  if (!row)
    throw Error(ErrorCode::kNotFound, fmt::format("{} \"{}\": not in the database", what, id.substr(0, 255)));
  return std::move(*row);
}

template <class Row, class ToJson>
Reply page_reply(const PageOf<Row>& page, const ToJson& to_json_of) {
  return json_reply(page_to_json(page, to_json_of));
}

/// The cluster row that ?cluster= names; nothing when it names none. Throws Error{kNotFound}.
inline std::optional<RowId> cluster_filter(const Request& request, const Store& store) {
  const std::string name(request.parameter("cluster"));
  if (name.empty()) return {};
  return present(store.find_cluster(std::string_view(name)), "cluster", name).id;
}

}  // namespace commtune::api::rest
