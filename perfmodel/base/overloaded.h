#pragma once
// A visitor of a std::variant, made of one function object for each alternative.

#include <type_traits>
#include <utility>
#include <variant>

namespace commtune {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

/// Calls the one of the visitors that takes what the variant holds, and returns its result. Each alternative
/// must be named: a visitor that takes anything (const auto&) is refused, so that a further alternative does
/// not compile until every match has learnt of it.
template <typename Variant, typename... Visitors>
constexpr decltype(auto) match(Variant&& variant, Visitors&&... visitors) {
  struct Unnamed {};
  static_assert(!(std::is_invocable_v<Visitors&, Unnamed&> || ...), "name each alternative of the variant");
  return std::visit(Overloaded{std::forward<Visitors>(visitors)...}, std::forward<Variant>(variant));
}

}  // namespace commtune
