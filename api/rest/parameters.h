#pragma once
// Path and query parameters that several routes have.

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/rest/message.h"
#include "api/view/page_json.h"
#include "perfmodel/error.h"
#include "store/store.h"

namespace commtune::api::rest {

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
