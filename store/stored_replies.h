#pragma once
// Answers kept under the idempotency key of their request, so that a client that lost an answer and asks
// again gets the same one and nothing is done twice.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"

namespace commtune {

struct StoredReply {
  int status = 200;
  std::string content_type{};
  std::string body{};
};

/// A request that must not be carried out twice.
struct KeyedRequest {
  std::string_view key;     ///< made unique among clients by the caller (who asks, which route, their key)
  std::string_view digest;  ///< of what the request says, to tell a repetition from a mistake
  std::optional<TokenId> token{};  ///< with which it was made
};

/// Who answers a request that came with a key.
enum class Claim {
  kOurs,          ///< nobody has yet: do the work, then answer() or release()
  kPending,       ///< somebody is at it
  kAnswered,      ///< here is what was answered
  kOtherRequest,  ///< the key was used for a different request
};

struct ClaimResult {
  Claim claim = Claim::kOurs;
  std::optional<StoredReply> answer;  ///< with kAnswered
};

/// The answers of a store. Thread and error rules are the store's; keep the store longer than this.
class StoredReplies {
 public:
  explicit StoredReplies(Store& store);

  /// abandoned  a claim made before this moment and still without an answer is taken over, because whoever
  ///            made it is gone
  ClaimResult claim(const KeyedRequest& request, Timestamp abandoned);
  /// Throws Error{kConflict} unless the key is claimed and not answered.
  void answer(std::string_view key, const StoredReply& answer);
  /// Gives the claim up: the next request with this key is new. An answer stays.
  void release(std::string_view key);
  /// Forgets what was claimed before this moment; how many.
  std::int64_t forget(Timestamp before);

 private:
  Store::Impl* impl_;  ///< the store's; stays where it is when the store is moved
};

}  // namespace commtune
