// Clusters: the machines, as they were found at one time.

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

const std::string kSelectClusters =
    "SELECT id, name, transport, fingerprint, seen, created, version, hosts, facts, "
    "coalesce(newest_facts, facts) FROM clusters";

ClusterRow read_cluster(Query& query) {
  ClusterRow row;
  read_values(query, row.id, row.name, row.transport, row.fingerprint, row.seen, row.origin.created,
              row.origin.version, row.hosts, row.facts, row.newest_facts);
  return row;
}

std::optional<RowId> same_cluster(DatabaseConnection& db, const Cluster& cluster) {
  Query query =
      db.query("SELECT id FROM clusters WHERE name = ? AND fingerprint = ? AND transport = ? AND hosts = ?");
  bind_values(query, cluster.name, cluster.fingerprint, cluster.transport, cluster.hosts);
  return query.next() ? std::optional<RowId>(query.column_integer()) : std::nullopt;
}

constexpr const char* kNextSeen = "(SELECT coalesce(max(seen_order), 0) + 1 FROM clusters)";

}  // namespace

RowId Store::put_cluster(const Cluster& cluster) {
  require(!cluster.name.empty(), "cluster.name", "\"\"", "must not be empty");
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  const Timestamp now = impl_->now();
  std::optional<RowId> id = same_cluster(db, cluster);
  if (id) {
    Query query = db.query(std::string("UPDATE clusters SET seen = ?, newest_facts = ?, seen_order = ") +
                           kNextSeen + " WHERE id = ?");
    bind_values(query, now, cluster.facts, *id).run();
  } else {
    Query query =
        db.query(std::string("INSERT INTO clusters (name, transport, fingerprint, seen_order, seen, "
                             "created, version, hosts, facts) VALUES (?, ?, ?, ") +
                 kNextSeen + ", ?, ?, ?, ?, ?)");
    bind_values(query, cluster.name, cluster.transport, cluster.fingerprint, now, now, impl_->options.version,
                cluster.hosts, cluster.facts)
        .run();
    id = db.last_row_id();
  }
  transaction.commit();
  return *id;
}

void Store::see_facts(RowId id, const std::map<std::string, std::string>& facts) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  const auto row = find_cluster(id);
  if (!row)
    throw Error(ErrorCode::kNotFound, "cluster " + std::to_string(id) + ": there is none in the store");
  std::map<std::string, std::string> newest = facts;
  newest.insert(row->newest_facts.begin(), row->newest_facts.end());
  Query query = db.query("UPDATE clusters SET newest_facts = ? WHERE id = ?");
  bind_values(query, newest, id).run();
  transaction.commit();
}

std::optional<ClusterRow> Store::find_cluster(RowId id) const {
  Query query = impl_->db.query(kSelectClusters + " WHERE id = ?");
  bind_values(query, id);
  return find_row(impl_->db, query, "cluster " + std::to_string(id), read_cluster);
}

std::optional<ClusterRow> Store::find_cluster(std::string_view name) const {
  Query query = impl_->db.query(kSelectClusters + " WHERE name = ? ORDER BY seen_order DESC LIMIT 1");
  bind_values(query, name);
  return find_row(impl_->db, query, "cluster " + std::string(name), read_cluster);
}

std::optional<ClusterState> Store::cluster_state(std::string_view name) const {
  Query query = impl_->db.query(
      "SELECT id, (SELECT max(id) FROM fits WHERE cluster = clusters.id), coalesce(newest_facts, facts) "
      "FROM clusters WHERE name = ? ORDER BY seen_order DESC LIMIT 1");
  bind_values(query, name);
  return find_row(impl_->db, query, "cluster " + std::string(name), [](Query& row) {
    ClusterState state;
    read_values(row, state.cluster, state.fit, state.newest_facts);
    return state;
  });
}

PageOf<ClusterRow> Store::clusters(const Page& page) const {
  return list_rows(impl_->db, kSelectClusters, {}, {"id"}, page, read_cluster);
}

}  // namespace commtune
