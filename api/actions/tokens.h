#pragma once
// Tokens of the service: made, shown once, kept as a salted hash.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/tokens.h"

namespace commtune::api {

struct MadeToken {
  RowId id = 0;
  std::string secret;  ///< "ct_12_...": what a client sends; kept nowhere
};

/// 256 random bits from the system behind the token's id. The hash is SHA-256 over salt and secret: the
/// secret cannot be guessed, so nothing slower is needed.
///
/// scopes  of "read", "plan", "operate"
/// throws  Error{kBadInput} naming field and rule
MadeToken make_token(Store& store, const std::string& name, const std::vector<std::string>& scopes,
                     std::optional<Timestamp> expires);

/// The secret of one start of the service, "ct_start_...": 256 random bits, which allow all until the service
/// ends. Kept in memory and never in the store.
std::string make_start_secret();
/// True for what looks like the secret of a start, of this one or another.
bool is_start_secret(std::string_view secret);
/// Takes the same time wherever they differ.
bool is_same_secret(std::string_view one, std::string_view other);

/// The id that a secret names; nothing when it does not look like one.
std::optional<RowId> token_id(std::string_view secret);

/// True when the secret is this token's. Takes the same time wherever they differ.
bool is_secret_of(const TokenRow& token, std::string_view secret);

/// Without salt and hash.
nlohmann::json to_json(const TokenRow& token);

}  // namespace commtune::api
