#include "store/quotas.h"

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

std::int64_t waiting_jobs(DatabaseConnection& db, TokenId token) {
  Query query = db.query("SELECT count(*) FROM jobs WHERE state = 'queued' AND token = ?");
  bind_values(query, token);
  query.next();
  return query.column_integer();
}

std::int64_t stored_rows(DatabaseConnection& db, const std::string& kind, TokenId token) {
  Query query = db.query("SELECT number FROM token_rows WHERE token = ? AND kind = ?");
  bind_values(query, token, kind);
  return query.next() ? query.column_integer() : 0;
}

}  // namespace

std::string to_string(Held held) {
  switch (held) {
    case Held::kProfiles:
      return "profiles";
    case Held::kPlans:
      return "plans";
    case Held::kRuns:
      return "runs";
    case Held::kWaitingJobs:
      return "jobs";
    case Held::kAnswers:
      return "answers";
  }
  return "unknown";
}

Quotas::Quotas(Store& store) : impl_(store.impl_.get()) {}

std::int64_t Quotas::count(Held held, TokenId token) const {
  return held == Held::kWaitingJobs ? waiting_jobs(impl_->db, token)
                                    : stored_rows(impl_->db, to_string(held), token);
}

}  // namespace commtune
