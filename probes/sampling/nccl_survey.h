#pragma once
// Measures NCCL's collectives by algorithm, protocol and number of channels, where ranks have GPUs.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "probes/sampling/link_survey.h"
#include "probes/sampling/measurement.h"

namespace commtune::probes {

/// Tunings in the order of how often they are the fastest, NCCL's own choice first: it is what the others are
/// compared with. All-reduces take all of them; their stages have rings alone, and PAT.
std::vector<NcclTuning> nccl_tunings();
/// What of NCCL's runs by a tuning: all-reduce, and its stages where the algorithm has them.
std::vector<Operation> nccl_operations(const NcclTuning& tuning);
/// Groups of ranks that jobs have communicators of: all, and those of the first host.
std::vector<int> nccl_groups(std::span<const std::string> rank_hosts);
/// From 1 KiB, or the options' first size, to their last, a factor of the options apart.
std::vector<Bytes> nccl_sizes(const ProbeOptions& options);

/// Sizes of all operations by one tuning after the other, since each needs communicators of its own; then, of
/// the tunings that are the fastest at the ends of the range, other numbers of channels; then all of it once
/// more, so that a sample's interval has in it how far communicators and minutes are apart. Within `limit` of
/// time.
///
/// known    what it says is not measured again
/// found    called with each new sample; a later one of the same quantity and size supersedes
/// returns  notes: what NCCL refused, what was left out for lack of time
std::vector<std::string> survey_nccl(Measurement& measurement, const ProbeOptions& options,
                                     const std::vector<std::string>& rank_hosts,
                                     std::span<const ProbeSample> known, Seconds limit, const Found& found);

}  // namespace commtune::probes
