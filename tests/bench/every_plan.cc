#include "tests/bench/every_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "tuner/messages.h"

namespace commtune::bench {

namespace {

using tuner::Planning;
using tuner::RoadOption;

constexpr std::size_t kMostParted = 3;

/// Halves of tensors, or whole ones where those are too many, in the order in which they appear.
std::vector<Piece> units_of(const Planning& job) {
  const std::vector<TensorRef>& tensors = job.work.tensors;
  const std::uint64_t element = element_size(job.profile.type).count;
  const bool halves = 2 * tensors.size() <= kMostUnits;
  std::vector<Piece> units;
  for (std::size_t t = tensors.size(); t-- > 0;) {
    const std::uint64_t size = tensors[t].bytes.count, first = halves ? size / 2 / element * element : 0;
    if (first > 0) units.push_back({static_cast<TensorId>(t), Bytes{0}, Bytes{first}});
    units.push_back({static_cast<TensorId>(t), Bytes{first}, Bytes{size - first}});
  }
  return units;
}

std::vector<Message> messages_of(const std::vector<Piece>& units, std::uint32_t cuts) {
  std::vector<Message> messages;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (i == 0 || (cuts >> (i - 1) & 1U) != 0) messages.emplace_back();
    std::vector<Piece>& pieces = messages.back().pieces;
    if (!pieces.empty() && pieces.back().tensor == units[i].tensor) {
      pieces.back().length += units[i].length;
    } else {
      pieces.push_back(units[i]);
    }
  }
  return messages;
}

class EveryPlan {
 public:
  EveryPlan(const Planning& job, const RoadOption& option)
      : job_(job), option_(option), simulator_(job.work) {
    best_.seconds = std::numeric_limits<double>::infinity();
  }

  BestPlan run() && {
    const std::vector<Piece> units = units_of(job_);
    for (std::uint32_t cuts = 0; cuts < (1U << (units.size() - 1)); ++cuts)
      try_messages(messages_of(units, cuts));
    return std::move(best_);
  }

 private:
  void try_messages(const std::vector<Message>& messages) {
    Plan plan = job_.empty_plan(option_.road);
    plan.barrier = Barrier::kPerLayer;
    plan.priority = tuner::list_priorities(messages.size());
    std::vector<std::size_t> order(messages.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      plan.messages.clear();
      for (const std::size_t i : order) plan.messages.push_back(messages[i]);
      try_credits(plan);
    } while (std::next_permutation(order.begin(), order.end()));
    if (messages.size() > kMostParted || !option_.cost.may_part || !may_be_decoupled(option_.road)) return;
    plan.messages = messages;
    try_sequences(plan);
  }

  /// Every order of the stages, a reduce before its distribute: 2 i and 2 i + 1 are message i's.
  void try_sequences(Plan& plan) {
    std::vector<std::uint32_t> steps(2 * plan.messages.size());
    std::iota(steps.begin(), steps.end(), 0U);
    do {
      plan.sequence.clear();
      std::vector<bool> reduced(plan.messages.size(), false);
      for (const std::uint32_t step : steps) {
        const bool second = step % 2 == 1;
        if (second && !reduced[step / 2]) break;
        reduced[step / 2] = true;
        plan.sequence.push_back({step / 2, second ? Stage::kDistribute : Stage::kReduce});
      }
      if (plan.sequence.size() == steps.size()) try_credits(plan);
    } while (std::next_permutation(steps.begin(), steps.end()));
  }

  void try_credits(Plan& plan) {
    for (const Bytes credit : {Bytes{0}, tuner::kUnlimited}) {
      plan.credit = credit;
      const double seconds = simulator_.run(plan, option_.cost).iteration.count();
      if (seconds < best_.seconds) best_ = {seconds, plan};
    }
  }

  const Planning& job_;
  const RoadOption& option_;
  Simulator simulator_;
  BestPlan best_;
};

}  // namespace

BestPlan best_of_every_plan(const Planning& job, const RoadOption& option) {
  return EveryPlan(job, option).run();
}

}  // namespace commtune::bench
