#pragma once
// Who asks, and what that allows.

#include <optional>
#include <string>
#include <string_view>

#include "store/rows.h"

namespace commtune::api::rest {

/// What a route asks for. Each includes the ones before it.
enum class Scope { kNone, kRead, kPlan, kOperate };

std::string_view to_string(Scope scope);               ///< "read", "plan", "operate"; "none"
std::optional<Scope> scope_of(std::string_view name);  ///< of a token: not "none"

struct Caller {
  Scope scope = Scope::kNone;  ///< the largest that it has
  TokenId token = kNoToken;
  std::string name;  ///< the token's, for people; "no token" without one
  std::string address;
};

}  // namespace commtune::api::rest
