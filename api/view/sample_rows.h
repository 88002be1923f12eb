#pragma once
// Between what a probe measures and what the store keeps of it.

#include <vector>

#include "probes/sample.h"
#include "store/rows.h"

namespace commtune::api {

NewSample to_row(const probes::ProbeSample& sample);
/// The inverse. Throws Error{kStorage} for a row that no probe of this version could have written.
probes::ProbeSample from_row(const SampleRow& row);
/// What NCCL was told to take where the row was measured. Throws the same.
NcclTuning nccl_tuning_of(const SampleRow& row);

}  // namespace commtune::api
