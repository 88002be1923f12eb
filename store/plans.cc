// Plans: the outcomes of tuning.

#include <algorithm>
#include <functional>

#include "perfmodel/plan_text.h"
#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

const std::string kPlansSummary =
    "SELECT plans.id, plans.digest, coalesce(layouts.layout, ''), plans.method, plans.model, plans.road, "
    "plans.workers, plans.messages, "
    "plans.profile, plans.fit, plans.cluster, coalesce(clusters.name, ''), plans.predicted_seconds, "
    "plans.half_width_seconds, plans.bound_seconds, plans.created, plans.version";
const std::string kFromPlans =
    " FROM plans LEFT JOIN clusters ON clusters.id = plans.cluster"
    " LEFT JOIN layouts ON layouts.profile_id = plans.profile";
const std::string kSelectPlansSummary = kPlansSummary + kFromPlans;
const std::string kSelectPlans = kPlansSummary + ", plans.plan, plans.ranking" + kFromPlans;
const std::string kSelectRanking = kPlansSummary + ", plans.ranking" + kFromPlans;

constexpr std::size_t kShortestPrefix = 4;

void read_summary(Query& query, PlanSummary& row) {
  read_values(query, row.id, row.digest, row.layout, row.method, row.model, row.road, row.workers,
              row.messages, row.profile, row.fit, row.cluster, row.cluster_name, row.predicted,
              row.half_width, row.bound, row.origin.created, row.origin.version);
}

PlanSummary read_plan_summary(Query& query) {
  PlanSummary row;
  read_summary(query, row);
  return row;
}

PlanRow read_plan(Query& query) {
  PlanRow row;
  read_summary(query, row);
  read_values(query, row.plan, row.ranking);
  return row;
}

PlanRanking read_ranking(Query& query) {
  PlanRanking row;
  read_summary(query, row);
  read_values(query, row.ranking);
  return row;
}

void check_times(const NewPlan& plan) {
  check_duration("plan.predicted", plan.predicted);
  check_duration("plan.half_width", plan.half_width);
  check_duration("plan.bound", plan.bound);
}

std::optional<RowId> cluster_of_fit(DatabaseConnection& db, std::optional<RowId> fit) {
  if (!fit) {
    return std::nullopt;
  }
  require_row(db, "fits", "fit", *fit);
  Query query = db.query("SELECT cluster FROM fits WHERE id = ?");
  bind_values(query, *fit);
  return query.next() ? std::optional<RowId>(query.column_integer()) : std::nullopt;
}

/// The first text that is greater than all texts that start with `prefix`, which are digits in hexadecimal.
std::string end_of_prefix(std::string_view prefix) { return std::string(prefix) + "g"; }

/// The only digest that starts with the prefix, if any.
std::optional<std::string> complete_digest(DatabaseConnection& db, std::string_view prefix) {
  require(prefix.size() >= kShortestPrefix, "digest", "\"" + std::string(prefix) + "\"",
          "must have at least " + std::to_string(kShortestPrefix) + " digits");
  Query query = db.query("SELECT DISTINCT digest FROM plans WHERE digest >= ? AND digest < ? LIMIT 2");
  bind_values(query, prefix, end_of_prefix(prefix));
  if (!query.next()) {
    return std::nullopt;
  }
  std::string first = query.column_text();
  if (query.next()) {
    throw Error(ErrorCode::kBadInput, "digest = \"" + std::string(prefix) +
                                          "\": several plans start like this (" + first + ", " +
                                          query.column_text() + "); give more digits");
  }
  return first;
}

}  // namespace

PlanTexts write_out(const NewPlan& plan, const Profile& profile) {
  check_times(plan);
  check(plan.plan, profile);
  PlanTexts texts{digest(plan.plan), json_text(plan.plan), {}};
  if (!plan.ranking.is_null()) {
    texts.ranking = json_text(plan.ranking);
  }
  return texts;
}

RowId Store::add_plan(const NewPlan& plan) {
  Transaction transaction(impl_->db);
  const RowId id = add_plan(plan, write_out(plan, impl_->known_profile(*this, plan.profile)));
  transaction.commit();
  return id;
}

RowId Store::add_plan(const NewPlan& plan, const PlanTexts& texts) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  const std::optional<RowId> cluster = cluster_of_fit(db, plan.fit);
  Query query = db.query(
      "INSERT INTO plans (digest, method, model, road, workers, messages, profile, fit, cluster, "
      "predicted_seconds, half_width_seconds, bound_seconds, created, version, plan, ranking, token) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  bind_values(query, texts.digest, plan.plan.method, plan.plan.model, describe_road(plan.plan),
              plan.plan.workers, plan.plan.messages.size(), plan.profile, plan.fit, cluster, plan.predicted,
              plan.half_width, plan.bound, impl_->now(), impl_->options.version, texts.plan, texts.ranking,
              plan.token)
      .run();
  const RowId id = db.last_row_id();
  transaction.commit();
  return id;
}

std::optional<PlanRow> Store::find_plan(RowId id) const {
  Query query = impl_->db.query(kSelectPlans + " WHERE plans.id = ?");
  bind_values(query, id);
  return find_row(impl_->db, query, "plan " + std::to_string(id), read_plan);
}

std::optional<PlanRow> Store::find_plan(std::string_view prefix) const {
  const auto whole = complete_digest(impl_->db, prefix);
  if (!whole) {
    return std::nullopt;
  }
  Query query = impl_->db.query(kSelectPlans + " WHERE plans.digest = ? ORDER BY plans.id DESC LIMIT 1");
  bind_values(query, *whole);
  return find_row(impl_->db, query, "plan " + *whole, read_plan);
}

std::optional<PlanRanking> Store::find_ranking(std::string_view digest, const std::string& name,
                                               const nlohmann::json& value) const {
  // What was stored is json_text of an object, so a member with this value is there letter by letter.
  // SQLite's instr() would look for it, too, but a letter at a time.
  const std::string member = json_text(name) + ":" + json_text(value);
  Query texts = impl_->db.query("SELECT id, ranking FROM plans WHERE digest = ? ORDER BY id DESC LIMIT 1");
  bind_values(texts, digest);
  if (!texts.next()) {
    return std::nullopt;
  }
  const RowId newest = texts.column_integer();
  const std::string text = texts.column_text();
  const std::boyer_moore_horspool_searcher is_member(member.begin(), member.end());
  if (std::search(text.begin(), text.end(), is_member) == text.end()) {
    return std::nullopt;
  }
  Query query = impl_->db.query(kSelectRanking + " WHERE plans.id = ?");
  bind_values(query, newest);
  auto found = find_row(impl_->db, query, "plan " + std::string(digest), read_ranking);
  if (!found || !found->ranking.is_object() || found->ranking.value(name, nlohmann::json()) != value) {
    return std::nullopt;
  }
  return found;
}

PageOf<PlanSummary> Store::plans(std::optional<RowId> cluster, const Page& page) const {
  return list_rows(impl_->db, kSelectPlansSummary, {"plans.cluster", cluster}, {"plans.id"}, page,
                   read_plan_summary);
}

}  // namespace commtune
