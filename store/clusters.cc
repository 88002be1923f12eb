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

struct StateOverTransport {
  ClusterState state;
  std::string transport;
};

/// Of the rows of a name, the latest seen first, the first of each transport.
std::vector<StateOverTransport> states_of(DatabaseConnection& db, std::string_view name) {
  Query query = db.query(
      "SELECT id, transport, (SELECT max(id) FROM fits WHERE cluster = clusters.id), "
      "coalesce(newest_facts, facts) FROM clusters WHERE seen_order IN "
      "(SELECT max(seen_order) FROM clusters WHERE name = ? GROUP BY transport) ORDER BY seen_order DESC");
  bind_values(query, name);
  std::vector<StateOverTransport> states;
  while (query.next()) {
    decode_row(db, "the state of cluster " + std::string(name), [&] {
      StateOverTransport& each = states.emplace_back();
      read_values(query, each.state.cluster, each.transport, each.state.fit, each.state.newest_facts);
    });
  }
  return states;
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

std::optional<ClusterRow> Store::find_cluster(std::string_view name, std::string_view transport) const {
  Query query =
      impl_->db.query(kSelectClusters + " WHERE name = ? AND transport = ? ORDER BY seen_order DESC LIMIT 1");
  bind_values(query, name, transport);
  return find_row(impl_->db, query, "cluster " + std::string(name), read_cluster);
}

std::vector<ClusterRow> Store::over_other_transports(const ClusterRow& cluster) const {
  std::vector<ClusterRow> rows;
  for (const StateOverTransport& each : states_of(impl_->db, cluster.name)) {
    if (each.transport == cluster.transport) continue;
    auto row = find_cluster(each.state.cluster);
    if (row && same_hosts(row->hosts, cluster.hosts)) rows.push_back(std::move(*row));
  }
  return rows;
}

std::optional<ClusterState> Store::cluster_state(std::string_view name) const {
  std::vector<StateOverTransport> states = states_of(impl_->db, name);
  if (states.empty()) return std::nullopt;
  ClusterState state = std::move(states.front().state);
  for (auto other = states.begin() + 1; other != states.end(); ++other)
    state.others.push_back(std::move(other->state));
  return state;
}

PageOf<ClusterRow> Store::clusters(const Page& page) const {
  return list_rows(impl_->db, kSelectClusters, {}, {"id"}, page, read_cluster);
}

}  // namespace commtune
