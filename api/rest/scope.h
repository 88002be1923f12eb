#pragma once
// Who asks, and what that allows.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace commtune::api::rest {

/// What a route asks for. Each includes the ones before it.
enum class Scope { kNone, kRead, kPlan, kOperate };

std::string_view to_string(Scope scope);               ///< "read", "plan", "operate"; "none"
std::optional<Scope> scope_of(std::string_view name);  ///< of a token: not "none"

constexpr std::int64_t kNoToken = 0;
constexpr std::int64_t kStartToken = -1;  ///< the one of this start, which is not in the store

struct Caller {
  Scope scope = Scope::kNone;     ///< the largest that it has
  std::int64_t token = kNoToken;  ///< the token's id in the store
  std::string name;               ///< the token's, for people; "no token" without one
  std::string address;
};

}  // namespace commtune::api::rest
