#pragma once
// Made-up measurements for tests of the service.

#include "perfmodel/profile.h"
#include "store/store.h"

namespace commtune {

/// Puts into an empty store: the cluster "lab" (n1 and n2, two ranks each) with a probe and a fit made up
/// from a law, a plan (1) for this profile, and a run of it (1).
void make_lab(Store& store, const Profile& profile);

NewRun run_of(RowId plan);            ///< on that cluster
RunResult result_of(double seconds);  ///< three iterations of about this length

}  // namespace commtune
