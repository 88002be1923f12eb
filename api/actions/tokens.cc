#include "api/actions/tokens.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

constexpr std::string_view kPrefix = "ct_";
constexpr std::string_view kStartPrefix = "ct_start_";
constexpr std::size_t kSecretBytes = 32, kSaltBytes = 16;
constexpr std::array<std::string_view, 3> kScopes = {"read", "plan", "operate"};

template <std::size_t kSize>
std::array<unsigned char, kSize> random_bytes() {
  std::array<unsigned char, kSize> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(kSize)) != 1)
    throw Error(ErrorCode::kUnavailable, "the system has no random bytes to make a token of");
  return bytes;
}

std::string random_text() {
  std::string text;
  for (const unsigned char byte : random_bytes<kSecretBytes>()) text += fmt::format("{:02x}", byte);
  return text;
}

std::vector<std::byte> hash_of(const std::vector<std::byte>& salt, std::string_view random_part) {
  std::vector<std::byte> text = salt;
  for (const char c : random_part) text.push_back(static_cast<std::byte>(c));
  std::vector<std::byte> hash(EVP_MAX_MD_SIZE);
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(hash.data()), &length,
                 EVP_sha256(), nullptr) != 1)
    throw Error(ErrorCode::kUnavailable, "SHA-256 is not available here");
  hash.resize(length);
  return hash;
}

/// What follows the id.
std::string_view random_part_of(std::string_view secret) {
  const std::size_t at = secret.rfind('_');
  return at == std::string_view::npos ? std::string_view{} : secret.substr(at + 1);
}

void check_scopes(const std::vector<std::string>& scopes) {
  if (scopes.empty()) throw Error(ErrorCode::kBadInput, "scopes: at least one of read, plan, operate");
  for (const std::string& scope : scopes)
    if (std::find(kScopes.begin(), kScopes.end(), scope) == kScopes.end())
      throw Error(ErrorCode::kBadInput,
                  fmt::format("scopes: expected read, plan or operate, got \"{}\"", scope));
}

}  // namespace

MadeToken make_token(Store& store, const std::string& name, const std::vector<std::string>& scopes,
                     std::optional<Timestamp> expires) {
  check_scopes(scopes);
  const std::string random_part = random_text();
  NewToken token;
  token.name = name;
  token.scopes = scopes;
  for (const unsigned char byte : random_bytes<kSaltBytes>()) token.salt.push_back(std::byte{byte});
  token.hash = hash_of(token.salt, random_part);
  token.expires = expires;
  const RowId id = Tokens(store).add(token);
  return {id, fmt::format("{}{}_{}", kPrefix, id, random_part)};
}

std::string make_start_secret() { return std::string(kStartPrefix) + random_text(); }

bool is_start_secret(std::string_view secret) { return secret.starts_with(kStartPrefix); }

bool is_same_secret(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

std::optional<RowId> token_id(std::string_view secret) {
  if (!secret.starts_with(kPrefix) || secret.size() > 128) return {};
  RowId id = 0;
  const char* const begin = secret.data() + kPrefix.size();
  const auto [end, error] = std::from_chars(begin, secret.data() + secret.size(), id);
  if (error != std::errc{} || end == secret.data() + secret.size() || *end != '_' || id < 1) return {};
  return id;
}

bool is_secret_of(const TokenRow& token, std::string_view secret) {
  const std::vector<std::byte> hash = hash_of(token.salt, random_part_of(secret));
  return hash.size() == token.hash.size() && CRYPTO_memcmp(hash.data(), token.hash.data(), hash.size()) == 0;
}

nlohmann::json to_json(const TokenRow& token) {
  const auto moment = [](const std::optional<Timestamp>& at) {
    return at ? nlohmann::json(to_iso8601(*at)) : nlohmann::json(nullptr);
  };
  return {{"id", token.id},
          {"name", token.name},
          {"scopes", token.scopes},
          {"created", to_iso8601(token.origin.created)},
          {"expires", moment(token.expires)},
          {"revoked", moment(token.revoked)}};
}

}  // namespace commtune::api
