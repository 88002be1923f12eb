#pragma once
// Random small jobs: any road, any pieces, pulls, orders, releases, barriers and credits that check()
// accepts.

#include <cstdint>
#include <vector>

#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::tests {

struct RandomJob {
  Profile profile;
  Plan plan;
};

/// Roads that a plan for `workers` can have on any transport (the library's own all-reduce needs an MPI one).
std::vector<Road> roads_for(int workers);

/// The same job for the same seed; some cast gradients of float32. Layers last some tens of microseconds,
/// tensors have 1 to 20,000 elements.
RandomJob random_job(std::uint64_t seed, int workers, const Road& road);

/// A plan for that profile; the same for the same seed.
Plan random_plan(std::uint64_t seed, const Profile& profile, int workers, const Road& road);

/// One layer per entry, each with one float32 tensor of so many elements; layers last `layer` both ways.
Profile profile_of(const std::vector<std::size_t>& elements, Seconds layer = Seconds{50e-6});

/// A message per tensor, last layer first; no credit, full barrier.
Plan wait_free_plan(const Profile& profile, int workers, const Road& road);

}  // namespace commtune::tests
