#include "api/question/plan_lookup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "api/text.h"
#include "perfmodel/error.h"

namespace commtune::api {
namespace {

constexpr std::size_t kShortestPrefix = 4;

std::optional<RowId> id_of(const std::string& text) {
  RowId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  // Sixteen digits could be a digest; no store has that many plans.
  if (error != std::errc{} || end != text.data() + text.size() || text.size() > 12) return {};
  return id;
}

bool is_chosen(const PlanRow& row) { return row.ranking.is_object() && row.ranking.contains("plans"); }

PlanRow latest_chosen(const Store& store) {
  for (Page page;;) {
    const PageOf<PlanSummary> plans = store.plans({}, page);
    for (const PlanSummary& summary : plans.rows) {
      auto row = store.find_plan(summary.id);
      if (row && is_chosen(*row)) return std::move(*row);
    }
    if (!plans.next) break;
    page.after = *plans.next;
  }
  throw Error(ErrorCode::kNotFound, "plan \"latest\": nothing has been planned yet; start with: tune MODEL");
}

}  // namespace

std::vector<std::pair<std::string, RowId>> ranking_of(const PlanRow& row) {
  if (!is_chosen(row))
    throw Error(
        ErrorCode::kBadInput,
        fmt::format(
            "plan {} (method {}) is not the chosen one of a ranking, so it leads to no other method's "
            "plan; name the chosen one",
            row.id, row.method));
  std::vector<std::pair<std::string, RowId>> methods;
  const nlohmann::json& plans = row.ranking.at("plans");
  for (const nlohmann::json& entry : row.ranking.at("answer").at("ranking")) {
    const auto method = entry.at("method").get<std::string>();
    const auto other = plans.find(method);
    methods.emplace_back(method, other == plans.end() ? row.id : other->get<RowId>());
  }
  return methods;
}

RowId plan_of_method(const PlanRow& row, const std::vector<std::pair<std::string, RowId>>& ranking,
                     const std::string& method) {
  if (method == "chosen") return row.id;
  if (method == "best") return ranking.front().second;
  if (method == "worst") return ranking.back().second;
  std::vector<std::string> known;
  for (const auto& [name, id] : ranking) {
    if (name == method) return id;
    known.push_back(name);
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("method \"{}\": not in the ranking of plan {}{}; it has {}", method, row.id,
                          did_you_mean(method, known), fmt::join(known, ", ")));
}

PlanRow plan_with_id(const Store& store, RowId id) {
  auto row = store.find_plan(id);
  if (!row) throw Error(ErrorCode::kStorage, fmt::format("plan {} of a ranking is missing", id));
  return std::move(*row);
}

std::optional<PlanRow> look_up_plan(const Store& store, const std::string& text) {
  if (text == "latest") return latest_chosen(store);
  if (const auto id = id_of(text))
    if (auto row = store.find_plan(*id)) return row;
  return text.size() >= kShortestPrefix ? store.find_plan(std::string_view(text)) : std::nullopt;
}

PlanRow find_stored_plan(const Store& store, const std::string& text) {
  if (auto row = look_up_plan(store, text)) return std::move(*row);
  throw Error(
      ErrorCode::kNotFound,
      fmt::format("plan \"{}\": no such file, id or digest; `tune show plans` lists what is stored", text));
}

}  // namespace commtune::api
