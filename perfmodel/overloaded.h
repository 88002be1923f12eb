#pragma once
// A visitor of a std::variant, made of one function object for each alternative.

namespace commtune {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace commtune
