#pragma once
// Plans that cast gradients while they travel. They lose something, so they are asked for by name, ranked
// among themselves, and stand beside no bound of lossless plans.

#include "tuner/tuner.h"

namespace commtune::tuner {

/// tune() for options.wire: plans for the bytes on the wire on the cluster as casts see it (cast_to() of
/// perfmodel/cost/plan_cost.h), which are plans of the profile's own tensors again in the answer. It has no
/// bounds and no gaps.
///
/// Throws what tune() throws; Error{kNotFound} "unknown for bf16" where that was not probed; Error{kBadInput}
/// for gradients that are not of float32, or with runs, whose plans are not those that are searched.
Answer cast_answer(const Profile& profile, const Cluster& cluster, const TuneOptions& options);

}  // namespace commtune::tuner
