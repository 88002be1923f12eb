#pragma once
// All pairs of hosts: latency and time per byte in rounds of disjoint pairs, then once more alone for
// whatever looks unusual, since pairs that measure at the same time may share what lies between them.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "probes/measurer.h"
#include "probes/targets.h"

namespace commtune::probes {

/// What a survey found, beside the samples that it hands to `found`.
struct SurveyResult {
  LinkGuess between;               ///< of a typical pair of hosts
  std::optional<Pair> typical;     ///< ranks on two hosts whose link is typical of its class
  std::vector<std::string> notes;  ///< pairs that were left out
};

/// Of a message that a survey sends, whatever the largest of a plan is.
inline constexpr Bytes kLargestSurveyed{4 << 20};

using Found = std::function<void(const ProbeSample&)>;

/// Measures pairs of hosts that `known` says nothing about, within `limit` of time.
/// found  called with each new sample; a later one of the same quantity and size supersedes
SurveyResult survey_links(Measurer& measurer, const ProbeOptions& options,
                          const std::vector<std::string>& rank_hosts, std::vector<ProbeSample> known,
                          Seconds limit, const Found& found);

/// A first idea of one link.
LinkGuess guess_link(Measurer& measurer, const Pair& pair, const Found& found);

}  // namespace commtune::probes
