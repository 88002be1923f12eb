#include "api/rest/http/scope.h"

namespace commtune::api::rest {

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::kNone:
      return "none";
    case Scope::kRead:
      return "read";
    case Scope::kPlan:
      return "plan";
    case Scope::kOperate:
      return "operate";
  }
  return "none";
}

std::optional<Scope> scope_of(std::string_view name) {
  for (const Scope scope : {Scope::kRead, Scope::kPlan, Scope::kOperate})
    if (to_string(scope) == name) return scope;
  return {};
}

}  // namespace commtune::api::rest
