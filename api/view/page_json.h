#pragma once
// A page of rows as JSON: of a list of the service, or of `tune show --json`.

#include <nlohmann/json.hpp>
#include <utility>

#include "store/rows.h"
#include "store/store.h"

namespace commtune::api {

/// to_json_of  row -> its JSON
template <class Row, class ToJson>
nlohmann::json page_to_json(const PageOf<Row>& page, const ToJson& to_json_of) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : page.rows) rows.push_back(to_json_of(row));
  return {{"rows", std::move(rows)},
          {"next", page.next ? nlohmann::json(*page.next) : nlohmann::json(nullptr)}};
}

}  // namespace commtune::api
