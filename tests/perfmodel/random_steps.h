#pragma once
// Orders of steps for plans with pulls.

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "perfmodel/common_parts.h"
#include "perfmodel/plan.h"

namespace commtune::tests {

/// Any order that the plan's messages and pulls allow.
inline std::vector<Step> random_steps(std::mt19937_64& random, const Plan& plan) {
  const CommonParts common = common_parts(plan);
  std::vector<std::uint32_t> missing(plan.pulls.size());
  for (const CommonPart& part : common.parts) ++missing[part.pull];
  std::vector<Step> may;
  std::vector<Step> steps;
  may.reserve(plan.messages.size());
  for (std::uint32_t message = 0; message < plan.messages.size(); ++message) may.push_back({message});
  while (!may.empty()) {
    std::swap(may[random() % may.size()], may.back());
    steps.push_back(may.back());
    may.pop_back();
    if (steps.back().stage == Stage::kDistribute) continue;
    for (const std::uint32_t part : common.of_message[steps.back().message]) {
      const std::uint32_t pull = common.parts[part].pull;
      if (--missing[pull] == 0) may.push_back({pull, Stage::kDistribute});
    }
  }
  return steps;
}

}  // namespace commtune::tests
