#pragma once
// Who may ask the service for what. The store sees salts and hashes, never a secret.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "store/store.h"

namespace commtune {

struct NewToken {
  std::string name{};                 ///< what it is for, for people
  std::vector<std::string> scopes{};  ///< "read", "plan", "operate"; at least one
  std::vector<std::byte> salt{};
  std::vector<std::byte> hash{};  ///< of salt and secret
  std::optional<Timestamp> expires{};
};

struct TokenRow : NewToken {
  RowId id = 0;
  std::optional<Timestamp> revoked;
  Origin origin;

  bool valid(Timestamp now) const { return !revoked && (!expires || now < *expires); }
};

/// The tokens of a store. Thread and error rules are the store's; keep the store longer than this.
class Tokens {
 public:
  explicit Tokens(Store& store);

  /// Throws Error{kBadInput} for an empty name, scope list, salt or hash.
  RowId add(const NewToken& token);
  /// From now on it is not valid; it stays listed. Throws Error{kNotFound}. Revoking twice changes nothing.
  void revoke(RowId id);
  std::optional<TokenRow> find(RowId id) const;
  PageOf<TokenRow> list(const Page& page = {}) const;

 private:
  Store::Impl* impl_;  ///< the store's; stays where it is when the store is moved
};

}  // namespace commtune
