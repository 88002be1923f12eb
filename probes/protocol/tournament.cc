#include "probes/protocol/tournament.h"

#include <algorithm>
#include <iterator>
#include <random>

namespace commtune::probes {

std::vector<std::vector<Pair>> tournament(int n) {
  std::vector<std::vector<Pair>> rounds;
  if (n < 2) {
    return rounds;
  }
  const int seats = n + n % 2;  // the last seat is empty for odd n
  for (int round = 0; round < seats - 1; ++round) {
    std::vector<Pair> pairs;
    for (int i = 0; i < seats / 2; ++i) {
      // Seat 0 stays; the others move on by one place each round.
      const int a = i == 0 ? 0 : (round + i - 1) % (seats - 1) + 1;
      const int b = (round + seats - 2 - i) % (seats - 1) + 1;
      if (a < n && b < n) {
        pairs.emplace_back(std::min(a, b), std::max(a, b));
      }
    }
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

std::vector<std::vector<Pair>> sampled_rounds(std::vector<std::vector<Pair>> rounds, int count,
                                              std::uint64_t seed) {
  if (count < 0 || rounds.size() <= static_cast<std::size_t>(count)) {
    return rounds;
  }
  std::vector<std::vector<Pair>> chosen;
  std::mt19937_64 random(seed);
  std::sample(rounds.begin(), rounds.end(), std::back_inserter(chosen), count, random);
  return chosen;
}

}  // namespace commtune::probes
