// Profiles, each kept once.

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

const std::string kProfilesSummary =
    "SELECT id, digest, coalesce(layout, ''), model, batch, layers, tensors, gradient_bytes, "
    "compute_seconds, how, created, version";
const std::string kFromProfiles = " FROM profiles LEFT JOIN layouts ON layouts.profile_id = profiles.id";
const std::string kSelectProfilesSummary = kProfilesSummary + kFromProfiles;
const std::string kSelectProfiles = kProfilesSummary + ", profile" + kFromProfiles;

void read_summary(Query& query, ProfileSummary& row) {
  read_values(query, row.id, row.digest, row.layout, row.model, row.batch, row.layers, row.tensors,
              row.gradient_bytes, row.compute, row.how, row.origin.created, row.origin.version);
}

ProfileSummary read_profile_summary(Query& query) {
  ProfileSummary row;
  read_summary(query, row);
  return row;
}

ProfileRow read_profile(Query& query) {
  ProfileRow row;
  read_summary(query, row);
  read_values(query, row.profile);
  return row;
}

std::optional<RowId> same_profile(DatabaseConnection& db, const std::string& digest,
                                  const std::string& model) {
  Query query = db.query("SELECT id FROM profiles WHERE digest = ? AND model = ?");
  bind_values(query, digest, model);
  return query.next() ? std::optional<RowId>(query.column_integer()) : std::nullopt;
}

}  // namespace

RowId Store::put_profile(const Profile& profile, std::optional<TokenId> token) {
  const std::string key = digest(profile);
  DatabaseConnection& db = impl_->db;
  if (const auto known = same_profile(db, key, profile.model)) {
    return *known;
  }
  const nlohmann::json json = to_json(profile);
  profile_from_json(json);  // what is stored can be read again
  Transaction transaction(db);
  if (const auto known = same_profile(db, key, profile.model)) {
    return *known;  // another process was quicker
  }
  Query query = db.query(
      "INSERT INTO profiles (digest, model, batch, layers, tensors, gradient_bytes, compute_seconds, how, "
      "created, version, profile, token) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  bind_values(query, key, profile.model, profile.batch, profile.layers.size(), profile.tensor_count(),
              profile.gradient_bytes(), profile.forward() + profile.backward() + profile.update(),
              profile.origin.how, impl_->now(), impl_->options.version, json, token)
      .run();
  const RowId id = db.last_row_id();
  Query layout = db.query("INSERT INTO layouts (profile_id, layout) VALUES (?, ?)");
  bind_values(layout, id, layout_digest(profile)).run();
  transaction.commit();
  return id;
}

std::optional<ProfileRow> Store::find_profile(RowId id) const {
  Query query = impl_->db.query(kSelectProfiles + " WHERE id = ?");
  bind_values(query, id);
  return find_row(impl_->db, query, "profile " + std::to_string(id), read_profile);
}

std::optional<ProfileRow> Store::find_profile(std::string_view digest) const {
  Query query = impl_->db.query(kSelectProfiles + " WHERE digest = ? ORDER BY id DESC LIMIT 1");
  bind_values(query, digest);
  return find_row(impl_->db, query, "profile " + std::string(digest), read_profile);
}

std::optional<ProfileRow> Store::find_profile_of_layout(std::string_view layout) const {
  Query query = impl_->db.query(kSelectProfiles + " WHERE layout = ? ORDER BY id DESC LIMIT 1");
  bind_values(query, layout);
  return find_row(impl_->db, query, "the profile of layout " + std::string(layout), read_profile);
}

const Profile& Store::Impl::known_profile(const Store& store, RowId id) {
  constexpr std::size_t kMost = 16;
  Query query = db.query("SELECT digest FROM profiles WHERE id = ?");
  bind_values(query, id);
  if (!query.next()) {
    throw Error(ErrorCode::kNotFound, "profile " + std::to_string(id) + ": there is none in the store");
  }
  std::string key = query.column_text();  // an id may come again when the transaction that made it is undone
  if (const auto found = profiles.find(key); found != profiles.end()) {
    return found->second;
  }
  if (profiles.size() == kMost) {
    profiles.erase(profiles.begin());
  }
  return profiles.emplace(std::move(key), store.find_profile(id).value().profile).first->second;
}

PageOf<ProfileSummary> Store::profiles(const Page& page) const {
  return list_rows(impl_->db, kSelectProfilesSummary, {}, {"id"}, page, read_profile_summary);
}

}  // namespace commtune
