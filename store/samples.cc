// Samples: what the probes measured, kept as it comes.

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

const std::string kSelectSamples =
    "SELECT id, session, kind, operation, road, workers, servers, source_rank, destination_rank, in_flight, "
    "size_bytes, median_seconds, half_width_seconds, repetitions, at, detail, raw_seconds FROM samples";

SampleRow read_sample(Query& query) {
  SampleRow row;
  read_values(query, row.id, row.session, row.kind, row.operation, row.road, row.workers, row.servers,
              row.source_rank, row.destination_rank, row.in_flight, row.bytes, row.median, row.half_width,
              row.repetitions, row.at, row.detail, row.raw_seconds);
  return row;
}

void check_sample(const NewSample& sample) {
  require(!sample.kind.empty(), "sample.kind", "\"\"", "must not be empty");
  require(sample.workers >= 0, "sample.workers", std::to_string(sample.workers), "must be at least 0");
  require(sample.servers >= 0, "sample.servers", std::to_string(sample.servers), "must be at least 0");
  require(sample.in_flight >= 1, "sample.in_flight", std::to_string(sample.in_flight), "must be at least 1");
  require(sample.repetitions >= 1, "sample.repetitions", std::to_string(sample.repetitions),
          "must be at least 1");
  check_duration("sample.median", sample.median);
  check_duration("sample.half_width", sample.half_width);
}

std::string state_of_session(DatabaseConnection& db, RowId session) {
  Query query = db.query("SELECT state FROM sessions WHERE id = ?");
  bind_values(query, session);
  if (!query.next()) {
    throw Error(ErrorCode::kNotFound, "session " + std::to_string(session) + ": there is none in the store");
  }
  return query.column_text();
}

void require_open_session(DatabaseConnection& db, RowId session) {
  const std::string state = state_of_session(db, session);
  if (state != to_string(WorkState::kRunning)) {
    throw Error(ErrorCode::kConflict,
                "session " + std::to_string(session) + " takes no more samples: it is " + state);
  }
}

void require_complete_session(DatabaseConnection& db, RowId session) {
  const std::string state = state_of_session(db, session);
  if (state != to_string(WorkState::kComplete)) {
    throw Error(ErrorCode::kConflict,
                "session " + std::to_string(session) + " is not complete yet: it is " + state);
  }
}

RowId insert_sample(DatabaseConnection& db, RowId session, const NewSample& sample, Timestamp at) {
  check_sample(sample);
  Query query = db.query(
      "INSERT INTO samples (session, kind, operation, road, workers, servers, source_rank, destination_rank, "
      "in_flight, size_bytes, median_seconds, half_width_seconds, repetitions, at, detail, raw_seconds) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  bind_values(query, session, sample.kind, sample.operation, sample.road, sample.workers, sample.servers,
              sample.source_rank, sample.destination_rank, sample.in_flight, sample.bytes, sample.median,
              sample.half_width, sample.repetitions, at, sample.detail, sample.raw_seconds)
      .run();
  return db.last_row_id();
}

}  // namespace

RowId Store::append_sample(RowId session, const NewSample& sample) {
  Transaction transaction(impl_->db);
  require_open_session(impl_->db, session);
  const RowId id = insert_sample(impl_->db, session, sample, impl_->now());
  transaction.commit();
  return id;
}

void Store::append_samples(RowId session, std::span<const NewSample> samples) {
  Transaction transaction(impl_->db);
  require_open_session(impl_->db, session);
  for (const NewSample& sample : samples) {
    insert_sample(impl_->db, session, sample, impl_->now());
  }
  transaction.commit();
}

void Store::supplement_samples(RowId session, std::span<const NewSample> samples) {
  Transaction transaction(impl_->db);
  require_complete_session(impl_->db, session);
  for (const NewSample& sample : samples) insert_sample(impl_->db, session, sample, impl_->now());
  transaction.commit();
}

PageOf<SampleRow> Store::samples(RowId session, const Page& page) const {
  return list_rows(impl_->db, kSelectSamples, {"session", session}, {"id", Direction::kOldestFirst}, page,
                   read_sample);
}

std::vector<SampleRow> Store::all_samples(RowId session) const {
  Query query = impl_->db.query(kSelectSamples + " WHERE session = ? ORDER BY id");
  bind_values(query, session);
  std::vector<SampleRow> rows;
  while (query.next()) {
    rows.push_back(decode_row(impl_->db, "a sample", [&] { return read_sample(query); }));
  }
  return rows;
}

}  // namespace commtune
