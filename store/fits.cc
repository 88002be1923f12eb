// Fits: a whole cluster as its samples were understood, each superseding the one before it.

#include <algorithm>

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

const std::string kFitsSummary =
    "SELECT fits.id, fits.session, fits.cluster, clusters.name, "
    "(SELECT max(id) FROM fits AS f WHERE f.cluster = fits.cluster AND f.id < fits.id), "
    "(SELECT min(id) FROM fits AS f WHERE f.cluster = fits.cluster AND f.id > fits.id), "
    "(SELECT min(created) FROM fits AS f WHERE f.session = fits.session), fits.created, fits.version";
const std::string kFromFits = " FROM fits JOIN clusters ON clusters.id = fits.cluster";
const std::string kSelectFitsSummary = kFitsSummary + kFromFits;
const std::string kSelectFits = kFitsSummary + ", fits.settings, fits.snapshot" + kFromFits;

void read_summary(Query& query, FitSummary& row) {
  read_values(query, row.id, row.session, row.cluster, row.cluster_name, row.supersedes, row.superseded_by,
              row.probed, row.origin.created, row.origin.version);
}

FitSummary read_fit_summary(Query& query) {
  FitSummary row;
  read_summary(query, row);
  return row;
}

FitRow read_fit(Query& query) {
  FitRow row;
  read_summary(query, row);
  read_values(query, row.settings, row.snapshot);
  return row;
}

/// What a curve of a fit is about.
struct Subject {
  std::string name;
  std::string setting;
  std::optional<Road> road;
  int workers = 0;
};

void insert_curve(DatabaseConnection& db, RowId fit, RowId session, const Subject& subject,
                  const Fit& curve) {
  if (curve.curve.empty()) {
    return;
  }
  Query query = db.query(
      "INSERT INTO fit_curves (fit, session, subject, setting, road, workers, pieces, samples, r_squared, "
      "median_relative, p90_relative, smallest_bytes, largest_bytes) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  bind_values(query, fit, session, subject.name, subject.setting, subject.road, subject.workers,
              curve.curve.pieces().size(), curve.quality.samples, curve.quality.r_squared,
              curve.quality.median_relative, curve.quality.p90_relative, curve.smallest, curve.largest)
      .run();
}

void insert_curves(DatabaseConnection& db, RowId fit, RowId session, const Cluster& cluster) {
  for (const auto& [link, fits] : cluster.links) {
    const std::string name = "link " + to_string(link);
    insert_curve(db, fit, session, {name, "alone", {}, 0}, fits.alone);
    insert_curve(db, fit, session, {name, "streamed", {}, 0}, fits.streamed);
    insert_curve(db, fit, session, {name, "duplex", {}, 0}, fits.duplex);
  }
  for (const OperationFit& operation : cluster.operations) {
    const std::string name = to_string(operation.operation);
    insert_curve(db, fit, session, {name, "alone", operation.road, operation.workers}, operation.alone);
    insert_curve(db, fit, session, {name, "streamed", operation.road, operation.workers}, operation.streamed);
  }
}

/// The cluster row of a session. Throws Error{kNotFound} for a session that does not exist.
ClusterRow cluster_of(const Store& store, RowId session) {
  const auto row = store.find_session(session);
  const auto cluster = row ? store.find_cluster(row->cluster) : std::nullopt;
  if (!cluster) {
    throw Error(ErrorCode::kNotFound, "session " + std::to_string(session) + ": there is none in the store");
  }
  return *cluster;
}

void check_same_cluster(const Cluster& snapshot, const ClusterRow& row) {
  const std::string rule = "must be what the session probed: ";
  require(snapshot.name == row.name, "fit.cluster.name", snapshot.name, rule + row.name);
  require(snapshot.transport == row.transport, "fit.cluster.transport", snapshot.transport,
          rule + row.transport);
  require(snapshot.fingerprint == row.fingerprint, "fit.cluster.fingerprint", snapshot.fingerprint,
          rule + row.fingerprint);
  require(snapshot.others.empty(), "fit.cluster.others", transports_of(snapshot),
          "must be of one transport: " + row.transport);
  require(same_hosts(snapshot.hosts, row.hosts), "fit.cluster.hosts",
          std::to_string(snapshot.hosts.size()) + " hosts",
          rule + std::to_string(row.hosts.size()) + " hosts");
}

}  // namespace

RowId Store::add_fit(const NewFit& fit) {
  const nlohmann::json snapshot = to_json(fit.cluster);
  cluster_from_json(snapshot);  // what is stored can be read again
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  const ClusterRow cluster = cluster_of(*this, fit.session);
  check_same_cluster(fit.cluster, cluster);
  Query query = db.query(
      "INSERT INTO fits (session, cluster, created, version, settings, snapshot) VALUES (?, ?, ?, ?, ?, ?)");
  bind_values(query, fit.session, cluster.id, impl_->now(), impl_->options.version, fit.settings, snapshot)
      .run();
  const RowId id = db.last_row_id();
  insert_curves(db, id, fit.session, fit.cluster);
  transaction.commit();
  return id;
}

std::optional<FitRow> Store::find_fit(RowId id) const {
  Query query = impl_->db.query(kSelectFits + " WHERE fits.id = ?");
  bind_values(query, id);
  return find_row(impl_->db, query, "fit " + std::to_string(id), read_fit);
}

std::optional<FitRow> Store::current_fit(RowId cluster) const {
  Query query = impl_->db.query(kSelectFits + " WHERE fits.cluster = ? ORDER BY fits.id DESC LIMIT 1");
  bind_values(query, cluster);
  return find_row(impl_->db, query, "the fit of cluster " + std::to_string(cluster), read_fit);
}

std::optional<FitRow> Store::current_fit(std::string_view cluster_name) const {
  const auto cluster = find_cluster(cluster_name);
  return cluster ? current_fit(cluster->id) : std::nullopt;
}

PageOf<FitSummary> Store::fits(std::optional<RowId> cluster, const Page& page) const {
  return list_rows(impl_->db, kSelectFitsSummary, {"fits.cluster", cluster}, {"fits.id"}, page,
                   read_fit_summary);
}

std::vector<FitCurveRow> Store::fit_curves(RowId fit) const {
  Query query = impl_->db.query(
      "SELECT id, fit, session, subject, setting, road, workers, pieces, samples, r_squared, "
      "median_relative, "
      "p90_relative, smallest_bytes, largest_bytes FROM fit_curves WHERE fit = ? ORDER BY id");
  bind_values(query, fit);
  std::vector<FitCurveRow> rows;
  while (query.next()) {
    FitCurveRow row;
    decode_row(impl_->db, "a fitted curve", [&] {
      read_values(query, row.id, row.fit, row.session, row.subject, row.setting, row.road, row.workers,
                  row.pieces, row.quality.samples, row.quality.r_squared, row.quality.median_relative,
                  row.quality.p90_relative, row.smallest, row.largest);
    });
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace commtune
