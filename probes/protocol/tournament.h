#pragma once
// Which pairs measure at the same time. Pure functions.

#include <cstdint>
#include <utility>
#include <vector>

namespace commtune::probes {

using Pair = std::pair<int, int>;  ///< indices, first < second

/// Rounds of disjoint pairs in which everybody meets everybody once (the circle method of round-robin
/// tournaments, Kirkman 1850): n - 1 rounds for even n, n for odd n, where one sits out each round. So the
/// time to measure all pairs grows with n, not with its square. Empty for n < 2.
std::vector<std::vector<Pair>> tournament(int n);

/// `count` of the rounds, drawn without replacement by seed, in their order; all of them if there are no
/// more.
std::vector<std::vector<Pair>> sampled_rounds(std::vector<std::vector<Pair>> rounds, int count,
                                              std::uint64_t seed);

}  // namespace commtune::probes
