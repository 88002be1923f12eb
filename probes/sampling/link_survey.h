#pragma once
// Measures latency and time per byte between all pairs of hosts. Disjoint pairs measure at the same time, in
// rounds. Pairs at the same time may share the network between them, so whatever looks unusual is measured
// again with nothing beside it.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "probes/sampling/measurement.h"
#include "probes/sampling/targets.h"

namespace commtune::probes {

/// What a survey found, beside the samples that it hands to `found`.
struct SurveyResult {
  LinkGuess between;               ///< of a typical pair of hosts
  std::optional<Pair> typical;     ///< ranks on two hosts whose link is typical of its class
  std::vector<std::string> notes;  ///< pairs that were left out
};

/// Largest message that a survey sends, whatever the options allow: 20 of them are six round trips of 400
/// Gb/s over 250 us.
inline constexpr Bytes kLargestSurveyed{4 << 20};

using Found = std::function<void(const ProbeSample&)>;

/// Measures pairs of hosts that `known` says nothing about, within `limit` of time.
/// found  called with each new sample; a later one of the same quantity and size supersedes
SurveyResult survey_links(Measurement& measurement, const ProbeOptions& options,
                          const std::vector<std::string>& rank_hosts, std::vector<ProbeSample> known,
                          Seconds limit, const Found& found);

/// A first idea of one link.
LinkGuess guess_link(Measurement& measurement, const Pair& pair, const Found& found);

}  // namespace commtune::probes
