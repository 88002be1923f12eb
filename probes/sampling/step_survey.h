#pragma once
// Compute steps: how they scatter, and by how much they and traffic slow each other.

#include <span>
#include <string>
#include <vector>

#include "probes/sampling/link_survey.h"
#include "probes/sampling/measurement.h"

namespace commtune::probes {

/// What computes: GPUs where the options say on which share of them, otherwise what the options say.
StepKind steps_of(const ProbeOptions& options);

/// Steps with nothing beside them: their spread, and how long one takes.
///
/// known  what it says is not measured again
/// found  called with each new sample
void survey_jitter(Measurement& measurement, StepKind steps, std::span<const ProbeSample> known,
                   const Found& found);

/// Steps while messages move on this road. On GPUs messages while steps run as well, in turn with messages
/// alone: a host's time line takes nothing of what traffic needs.
///
/// beta     a guess of what a byte takes over a link, for as many messages as last long enough; on GPUs a
/// short
///          stream tells
/// returns  notes: what was not measured, and why
std::vector<std::string> survey_slow_downs(Measurement& measurement, StepKind steps, const Road& road,
                                           int workers, SecondsPerByte beta,
                                           std::span<const ProbeSample> known, const Found& found);

}  // namespace commtune::probes
