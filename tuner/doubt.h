#pragma once
// What the doubt in the fits does to a ranking: MODEL.md section 7.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perfmodel/cluster.h"
#include "tuner/planning.h"
#include "tuner/tuner.h"

namespace commtune::tuner {

/// Simulates every entry of a ranking on every draw and fills in Entry::doubt; on some of the draws only
/// where the entry is never near the best one of its transport, or can no longer be chosen. The best of a
/// draw is the fastest of those that were simulated on it. The fits of different transports are in doubt
/// independently of each other. False, and nothing is filled in, when time was out before.
///
/// views  of each transport that an entry's plan wants
bool judge_under_doubt(std::vector<Entry>& ranking, const std::vector<TransportView>& views, int draws,
                       std::uint64_t seed, const OutOfTime& out_of_time = {});
/// The same of a cluster with one transport.
inline bool judge_under_doubt(std::vector<Entry>& ranking, const Planning& job, const Cluster& cluster,
                              int draws, std::uint64_t seed, const OutOfTime& out_of_time = {}) {
  return judge_under_doubt(ranking, {{job, cluster}}, draws, seed, out_of_time);
}

/// Of entries that are equally good: the simplest that has not many times as many messages as another, and of
/// several as simple the one of fewest messages, then the one that `equals` has first.
///
/// equals  indices into the ranking, at least one
std::size_t simplest(const std::vector<Entry>& ranking, const std::vector<std::size_t>& equals);

struct Decision {
  std::size_t chosen = 0;
  bool clear = true;
};

/// The entry of least expected regret and optimism together. Where others can hardly be told from it
/// (kIndifferent), those stay that can hardly be told from the best of them at the upper limits of the fits
/// either (Doubt::at_upper_limits): the mean over the draws hides what happens where the fits are too low. Of
/// these wins the simplest(), and of several as simple the one of least regret. Needs the doubt of every
/// entry.
///
/// How much slack a plan needs is thus what the fits say of themselves: none where they are sure, and more
/// than a tenth where their samples scatter as much. What no fit knows, such as traffic of other jobs, it
/// does not cover.
Decision decide(const std::vector<Entry>& ranking);

}  // namespace commtune::tuner
