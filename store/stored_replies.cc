#include "store/stored_replies.h"

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

/// What is known under a key.
struct Known {
  std::string request_digest;
  Timestamp claimed;
  std::optional<StoredReply> answer;
};

std::optional<Known> find_known(DatabaseConnection& db, std::string_view key) {
  Query query =
      db.query("SELECT request_digest, claimed, status, content_type, body FROM answers WHERE key = ?");
  bind_values(query, key);
  return find_row(db, query, "an answer", [](Query& row) {
    Known known;
    std::optional<int> status;
    std::string content_type, body;
    read_values(row, known.request_digest, known.claimed, status, content_type, body);
    if (status) {
      known.answer = StoredReply{*status, content_type, body};
    }
    return known;
  });
}

}  // namespace

StoredReplies::StoredReplies(Store& store) : impl_(store.impl_.get()) {}

ClaimResult StoredReplies::claim(const KeyedRequest& request, Timestamp abandoned) {
  require(!request.key.empty(), "key", "\"\"", "must not be empty");
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  if (const auto known = find_known(db, request.key)) {
    if (known->request_digest != request.digest) {
      return {Claim::kOtherRequest, std::nullopt};
    }
    if (known->answer) {
      return {Claim::kAnswered, known->answer};
    }
    if (known->claimed >= abandoned) {
      return {Claim::kPending, std::nullopt};
    }
  }
  // An update in place of a replacement, of which the count of the token's answers would not hear.
  Query query = db.query(
      "INSERT INTO answers (key, request_digest, token, claimed) VALUES (?, ?, ?, ?)"
      " ON CONFLICT (key) DO UPDATE SET claimed = excluded.claimed");
  bind_values(query, request.key, request.digest, request.token, impl_->now()).run();
  transaction.commit();
  return {Claim::kOurs, std::nullopt};
}

void StoredReplies::answer(std::string_view key, const StoredReply& answer) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  Query query =
      db.query("UPDATE answers SET status = ?, content_type = ?, body = ? WHERE key = ? AND status IS NULL");
  bind_values(query, answer.status, answer.content_type, answer.body, key).run();
  if (db.changes() == 0) {
    throw Error(ErrorCode::kConflict, "idempotency key \"" + std::string(key) +
                                          "\": nobody has claimed it, or it is answered already");
  }
  transaction.commit();
}

void StoredReplies::release(std::string_view key) {
  Transaction transaction(impl_->db);
  Query query = impl_->db.query("DELETE FROM answers WHERE key = ? AND status IS NULL");
  bind_values(query, key).run();
  transaction.commit();
}

std::int64_t StoredReplies::forget(Timestamp before) {
  Transaction transaction(impl_->db);
  Query query = impl_->db.query("DELETE FROM answers WHERE claimed < ?");
  bind_values(query, before).run();
  const std::int64_t forgotten = impl_->db.changes();
  transaction.commit();
  return forgotten;
}

}  // namespace commtune
