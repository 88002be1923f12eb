#include "store/tokens.h"

#include "store/store_impl.h"

namespace commtune {

using namespace sql;

namespace {

const std::string kSelectTokens =
    "SELECT id, name, scopes, salt, hash, created, expires, revoked, version FROM tokens";

TokenRow read_token(Query& query) {
  TokenRow row;
  read_values(query, row.id, row.name, row.scopes, row.salt, row.hash, row.origin.created, row.expires,
              row.revoked, row.origin.version);
  return row;
}

}  // namespace

Tokens::Tokens(Store& store) : impl_(store.impl_.get()) {}

RowId Tokens::add(const NewToken& token) {
  require(!token.name.empty(), "token.name", "\"\"", "must not be empty");
  require(!token.scopes.empty(), "token.scopes", "[]", "must name at least one scope");
  require(!token.salt.empty(), "token.salt", "no bytes", "must not be empty");
  require(!token.hash.empty(), "token.hash", "no bytes", "must not be empty");
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  Query query = db.query(
      "INSERT INTO tokens (name, scopes, salt, hash, created, expires, version) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)");
  bind_values(query, token.name, token.scopes, token.salt, token.hash, impl_->now(), token.expires,
              impl_->options.version)
      .run();
  const RowId id = db.last_row_id();
  transaction.commit();
  return id;
}

void Tokens::revoke(RowId id) {
  DatabaseConnection& db = impl_->db;
  Transaction transaction(db);
  require_row(db, "tokens", "token", id);
  Query query = db.query("UPDATE tokens SET revoked = coalesce(revoked, ?) WHERE id = ?");
  bind_values(query, impl_->now(), id).run();
  transaction.commit();
}

std::optional<TokenRow> Tokens::find(RowId id) const {
  Query query = impl_->db.query(kSelectTokens + " WHERE id = ?");
  bind_values(query, id);
  return find_row(impl_->db, query, "token " + std::to_string(id), read_token);
}

PageOf<TokenRow> Tokens::list(const Page& page) const {
  return list_rows(impl_->db, kSelectTokens, {}, {"id"}, page, read_token);
}

}  // namespace commtune
