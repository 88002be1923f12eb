#include "api/question/plan_lookup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "api/text.h"
#include "executor/transport/registry/kinds.h"
#include "perfmodel/base/error.h"
#include "tuner/methods/method.h"

namespace commtune::api {
namespace {

constexpr std::size_t kShortestPrefix = 4;
/// More plans than a ranking has: the chosen one is stored after the others.
constexpr RowId kMostOfRanking = 256;

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

std::vector<RankedMethod> ranking_of(const PlanRow& row) {
  if (!is_chosen(row))
    throw Error(
        ErrorCode::kBadInput,
        fmt::format(
            "plan {} (method {}) is not the chosen one of a ranking, so it leads to no other method's "
            "plan; name the chosen one",
            row.id, row.method));
  std::vector<RankedMethod> ranking;
  const nlohmann::json& plans = row.ranking.at("plans");
  for (const nlohmann::json& entry : row.ranking.at("answer").at("ranking")) {
    RankedMethod& ranked = ranking.emplace_back();
    ranked.method = entry.at("method").get<std::string>();
    ranked.transport = entry.value("transport", std::string());
    // The chosen plan is stored last: its own id is not among those that it lists.
    if (const auto other = plans.find(ranked.method); other != plans.end()) {
      ranked.plan = other->get<RowId>();
    } else if (ranked.method == row.method) {
      ranked.plan = row.id;
    }
  }
  return ranking;
}

RankedMethod method_of(const PlanRow& row, const std::string& name) {
  const std::vector<RankedMethod> ranking = ranking_of(row);
  if (name == "chosen") return {row.method, row.id};
  if (name == "best") return ranking.front();
  if (name == "worst") return ranking.back();
  std::vector<std::string> known;
  for (const RankedMethod& ranked : ranking) {
    if (ranked.method == name) return ranked;
    known.push_back(ranked.method);
  }
  for (const RankedMethod& ranked : ranking)
    if (tuner::base_method(ranked.method) == name) return ranked;
  throw Error(ErrorCode::kNotFound,
              fmt::format("method \"{}\": not in the ranking of plan {}{}; it has {}", name, row.id,
                          did_you_mean(name, known), fmt::join(known, ", ")));
}

std::optional<RankedMethod> next_over_another(const std::vector<RankedMethod>& ranking,
                                              const std::string& transport) {
  const auto next = std::ranges::find_if(ranking, [&](const RankedMethod& each) {
    return !each.transport.empty() && each.transport != transport && !not_between_processes(each.transport);
  });
  return next == ranking.end() ? std::nullopt : std::optional(*next);
}

std::optional<PlanRow> chosen_of_ranking(const Store& store, RowId plan) {
  for (RowId id = plan; id <= plan + kMostOfRanking; ++id) {
    auto row = store.find_plan(id);
    if (!row || !is_chosen(*row)) continue;
    const nlohmann::json& plans = row->ranking.at("plans");
    const bool has_it = std::ranges::any_of(plans, [&](const nlohmann::json& each) { return each == plan; });
    if (id == plan || has_it) return row;
  }
  return std::nullopt;
}

PlanRow plan_with_id(const Store& store, RowId id) {
  auto row = store.find_plan(id);
  if (!row) throw Error(ErrorCode::kStorage, fmt::format("plan {} of a ranking is missing", id));
  return std::move(*row);
}

Profile profile_of(const Store& store, const PlanRow& row) {
  auto profile = store.find_profile(row.profile);
  if (!profile)
    throw Error(ErrorCode::kStorage, fmt::format("profile {} of plan {} is missing", row.profile, row.id));
  return std::move(profile->profile);
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
